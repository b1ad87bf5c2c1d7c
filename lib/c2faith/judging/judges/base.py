"""What every judge is: a name, a fingerprint, and a stream of replies to queries."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from c2faith.records import InputError

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Query:
    """One item as a judge gets it; what a task hides is in none of its fields, and no label is."""

    item_id: str
    task: str
    messages: tuple[tuple[str, str], ...]  # (role, content): all that a language model sees
    question: str  # this and the next two are the same, unrendered, for judges that compute
    steps: tuple[str, ...]
    target: int | None  # the step in question, the last one, for detection and its ablations
    prompt_sha256: str  # of the judge's fingerprint and the messages: changed ones make another key

    @property
    def n_steps(self) -> int:
        return len(self.steps)

    @property
    def key(self) -> Key:
        """What a reply is found under."""
        return self.item_id, self.prompt_sha256


@dataclass(frozen=True, slots=True)
class Reply:
    """One attempt's raw outcome; nothing here is parsed."""

    text: str | None
    finish_reason: str | None = "stop"
    usage: Mapping[str, int] = field(default_factory=dict)
    latency_s: float = 0.0
    model: str = ""
    mode: str = ""
    error: str | None = None  # a `verdicts.Failure`, where an attempt brought no text
    # Probabilities of the admissible answers, if a judge gives them: 0, 1; 0 … n − 1, −1 (localization); 0 … 4.
    scores: tuple[float, ...] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


class Judge(Protocol):
    """A model with its prompt, sampling and parser.

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
