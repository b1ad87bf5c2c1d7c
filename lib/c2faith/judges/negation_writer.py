"""An API model that writes negations: what the `llm` negator asks, every reply journaled.

A negation is paid for once: the nth request of the same messages is answered from the journal if it was answered
before, so the same command resumes after an interruption and rebuilds the same items for nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from c2faith import journal, judges
from c2faith.judges import openai_api
from c2faith.judges.base import Query, Reply
from c2faith.judges.openai_api import OpenAIJudge
from c2faith.negate.llm import MAX_TOKENS, TEMPERATURE
from c2faith.records import InputError, sha256


class NegationWriter:
    """Completes messages through a judge's endpoint, as `negate.llm.LlmNegator` asks for; a context manager.

    Parameters
    ----------
    judge : OpenAIJudge
        Retries and waits are its own.
    path : Path
        The journal, held open and locked until the context ends.

    Raises
    ------
    InputError
        When called, if the endpoint refuses or gives no answer; what was written is kept.
    """

    def __init__(self, judge: OpenAIJudge, path: Path):
        self._judge = judge
        self._book = journal.Journal(path)
        self._known = {
            (row["item_id"], row["prompt_sha256"]): row for row in journal.read(path) if journal.is_final(row)
        }
        self._samples: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._book.__exit__(*raised)

    def __call__(self, messages: Sequence[tuple[str, str]]) -> Reply:
        """The reply to messages; each call with the same ones is the next sample."""
        key = sha256([self._judge.fingerprint, messages])
        item_id = f"negation/{key[:16]}/{self._samples[key]}"
        self._samples[key] += 1
        if row := self._known.get((item_id, key)):
            return Reply(row["text"], row["finish_reason"], model=row["model"], error=row["error"])
        query = Query(item_id, "negation", tuple(messages), "", (), None, key)  # type: ignore[arg-type]
        for _, reply in self._judge.replies([query]):
            self._book.append(query, reply)
        if reply.error == "api_error":
            reason = reply.extra.get("message", "")
            raise InputError(
                f"{self._judge.endpoint.host}: no negation came back ({reason}); the same command resumes"
            )
        return reply


def open_writer(name: str, path: Path, **edge: Any) -> NegationWriter:
    """The writer behind a judge's name, sampling as the paper does (Section 4.2).

    Parameters
    ----------
    name : str
        As for `judges.make`.
    path : Path
        The journal of negations, e.g. ``negations.jsonl`` in the run's folder.
    **edge
        As for `openai_api.from_config`.

    Raises
    ------
    InputError
        If the name is no API judge's, or its endpoint is not set up.
    """
    config = judges.read_config(name, edge.get("base_url"))
    if judges.PROVIDERS.get(config["provider"], "openai_api") != "openai_api":
        raise InputError(f"negator 'llm' asks an API model, which judge {name!r} is not")
    config["parameters"] = {"temperature": TEMPERATURE, "max_tokens": MAX_TOKENS}
    return NegationWriter(openai_api.from_config(config, connections=1, **edge), path)
