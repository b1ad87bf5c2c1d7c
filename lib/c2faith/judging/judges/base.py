"""What every judge is: a name, a fingerprint, and a stream of replies to queries."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from c2faith.records import InputError


@dataclass(frozen=True, slots=True)
class Query:
    """One item as a judge gets it.

    Attributes
    ----------
    item_id : str
        Names the item within its task.
    task : str
        A name of `judging.tasks.TASKS`.
    messages : tuple of (role, content)
        The rendered prompt: all that a language model sees.
    question, steps, target
        The same, unrendered, for judges that compute instead of reading; what a task hides is not in them either.
        `target` is the index of the step in question for detection and its ablations (steps after it are not part
        of the query) and None otherwise: it never carries the answer.
    n_steps : int
        How many steps the judge sees; verdicts of localization lie in −1 … n_steps − 1.
    prompt_sha256 : str
        Hash of the judge's fingerprint and the messages: with the item it is the reply's key, so a changed
        prompt, model or parameter is another key.
    """

    item_id: str
    task: str
    messages: tuple[tuple[str, str], ...]
    question: str
    steps: tuple[str, ...]
    target: int | None
    prompt_sha256: str

    @property
    def n_steps(self) -> int:
        return len(self.steps)

    @property
    def key(self) -> tuple[str, str]:
        """What a reply is found under."""
        return self.item_id, self.prompt_sha256


@dataclass(frozen=True, slots=True)
class Reply:
    """One attempt's raw outcome; nothing here is parsed.

    `error` is None, or the kind of failure (``content_filter``, ``refusal``, ``api_error`` …) of an attempt that
    brought no text. `scores` are the probabilities of the admissible answers in their order (detection: 0, 1;
    localization: 0 … n−1, −1; coverage: 0 … 4) where a judge gives them.
    """

    text: str | None
    finish_reason: str | None = "stop"
    usage: Mapping[str, int] = field(default_factory=dict)
    latency_s: float = 0.0
    model: str = ""
    mode: str = ""
    error: str | None = None
    scores: tuple[float, ...] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


class Judge(Protocol):
    """A model with its prompt, sampling and parser, pinned by a fingerprint.

    A judge that cannot answer every task has ``answers``, the names of those that it can, and ``kind``, words for
    what it is. One that costs money has ``prices``, ``price`` and ``limit_spending``.
    """

    judge_id: str
    tasks: tuple[str, ...]  # what it is asked where no task is named
    config: Mapping[str, Any]  # its description, put down beside its replies

    @property
    def fingerprint(self) -> str:
        """Hash of all that could change a reply besides the prompt: model, mode, parameters."""

    def replies(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Reply]]:
        """Answer queries in any order, each as soon as it is there, so that the journal loses little."""


def refuse_unknown(
    config: Mapping[str, Any], kind: str, edge: Collection[str], known: Collection[str] = ()
) -> None:
    """An `InputError` for a parameter of a judge's description, or anything at the edge, that its kind has not."""
    if unknown := sorted({*(config.get("parameters") or {}), *edge} - {*known}):
        raise InputError(f"judge {config['judge_id']}: {kind} has no {unknown[0]!r}")
