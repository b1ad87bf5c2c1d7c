"""An API model that writes negations: what the `llm` negator asks, every reply journaled.

A negation is paid for once: the nth request of the same messages is answered from the journal if it was answered
before, so the same command resumes after an interruption and rebuilds the same items for nothing.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from c2faith.dataset.negate.llm import MAX_TOKENS, TEMPERATURE
from c2faith.judging import judges, replies
from c2faith.judging.judges import openai_api, pricing
from c2faith.judging.judges.base import Query, Reply
from c2faith.judging.judges.openai_api import OpenAIJudge
from c2faith.judging.prompts import Messages
from c2faith.progress import Progress
from c2faith.records import InputError, sha256


class NegationWriter:
    """Completes messages through a judge's endpoint, as `negate.llm.LlmNegator` asks for; a context manager.

    Parameters
    ----------
    judge : OpenAIJudge
        Retries and waits are its own.
    path : Path
        The journal, held open and locked until the context ends.
    max_cost : float, optional
        Dollars, over all resumes; no call is begun that might take the journal's cost past them.

    Raises
    ------
    InputError
        When called, if the endpoint refuses or gives no answer, or `max_cost` is reached; what was written is kept.
    """

    def __init__(self, judge: OpenAIJudge, path: Path, max_cost: float | None = None):
        self._judge, self._max_cost = judge, max_cost
        self._samples: Counter[str] = Counter()
        self._expected: set[str] = set()
        with ExitStack() as stack:
            self._book = stack.enter_context(replies.Journal(path))
            rows = list(replies.read(path))
            self._known = {replies.key(row): row for row in rows if replies.is_final(row)}
            self._dollars = sum(judge.price(row.get("usage") or {}) for row in rows)
            if max_cost is not None:
                judge.limit_spending(max_cost - self._dollars)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.__exit__(*raised)

    def expect(self, requests: Sequence[Messages]) -> None:
        """Forecast the first samples of these messages on stderr, and show progress through them from now on."""
        samples: Counter[str] = Counter()
        queries = [self._query(messages, samples) for messages in requests]
        self._expected = {query.item_id for query in queries}
        left = [query for query in queries if query.key not in self._known]
        if not left:
            return
        forecast = pricing.forecast(left, self._judge.model, self._judge.prices)
        name = f"{self._judge.judge_id} negations"
        print(f"{name}: {forecast.line()}, more for rejected ones", file=sys.stderr, flush=True)
        progress = Progress(name, len(queries), len(queries) - len(left), status=self._judge.status)
        progress.dollars = self._dollars
        self._progress = self._stack.enter_context(progress)

    def __call__(self, messages: Messages) -> Reply:
        """The reply to messages; each call with the same ones is the next sample."""
        query = self._query(messages, self._samples)
        if row := self._known.get(query.key):
            return Reply(row["text"], row["finish_reason"], model=row["model"], error=row["error"])
        reply = None
        for _, reply in self._judge.replies([query]):
            self._book.append(query, reply)
            self._dollars += self._judge.price(reply.usage)
        if reply is None or reply.extra.get("will_retry"):
            raise InputError(
                f"MAX_COST={self._max_cost:g} is reached (${self._dollars:.4g} are spent on negations); "
                "they are kept, the same command with a larger one resumes"
            )
        if reply.error == "api_error":
            reason = reply.extra.get("message", "")
            raise InputError(
                f"{self._judge.endpoint.host}: no negation came back ({reason}); the same command resumes"
            )
        if query.item_id in self._expected:
            self._progress.advance(self._dollars)
        return reply

    def _query(self, messages: Messages, samples: Counter[str]) -> Query:
        """The next sample of the messages, counted in `samples`."""
        key = sha256([self._judge.fingerprint, messages])
        item_id = f"negation/{key[:16]}/{samples[key]}"
        samples[key] += 1
        return Query(item_id, "negation", tuple(messages), "", (), None, key)


def open_writer(name: str, path: Path, *, max_cost: float | None = None, **edge: Any) -> NegationWriter:
    """The writer behind a judge's name, sampling as the paper does (Section 4.2).

    Parameters
    ----------
    name : str
        As for `judges.make`.
    path : Path
        The journal of negations, e.g. ``negations.jsonl`` in the run's folder.
    max_cost : float, optional
        As of `NegationWriter`.
    **edge
        As for `openai_api.from_config`.

    Raises
    ------
    InputError
        If the name is no API judge's, its endpoint is not set up, or `max_cost` is given and it has no prices.
    """
    config = judges.read_config(name, edge.get("base_url"))
    if not judges.is_api(config["provider"]):
        raise InputError(f"negator 'llm' asks an API model, which judge {name!r} is not")
    config["parameters"] = {"temperature": TEMPERATURE, "max_tokens": MAX_TOKENS}
    if config.get("prices"):
        config["prices"] = {**config["prices"], "expected_output_tokens": MAX_TOKENS}
    return NegationWriter(openai_api.from_config(config, connections=1, **edge), path, max_cost)
