"""The course of one query: after each call, whether and how it is asked again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tenacity.wait import wait_base

from c2faith.judging import tasks, verdicts
from c2faith.judging.judges.base import Query
from c2faith.judging.judges.dialect import LONGER, Dialect
from c2faith.judging.judges.limiter import seconds
from c2faith.judging.judges.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Step:
    """What follows a call: ask again (after `wait_s`), or leave it; `change` says how the request changed."""

    again: bool
    wait_s: float = 0.0
    change: str = ""


DONE, AGAIN = Step(again=False), Step(again=True)


class Course:
    """Counts what one query has used up.

    A rate limit costs nothing but time. Broken connections and server errors are tried `attempts` times. A
    rejected form is changed as often as the dialect finds something to change. A reply cut off at its cap is
    asked for once more with a larger one; one that cannot be read, once more as it was (a negation, never: its
    negator judges it).
    """

    def __init__(self, query: Query, dialect: Dialect, attempts: int, backoff: wait_base):
        self.query = query
        self._dialect, self._attempts, self._backoff = dialect, attempts, backoff
        self._failures = 0
        self._longer = self._resampled = False
        self._version = dialect.version

    @property
    def cap(self) -> int | None:
        """Most tokens of the next call's reply, where the parameters set it."""
        cap = self._dialect.cap
        return LONGER * cap if cap and self._longer else cap

    def request(self) -> dict[str, Any]:
        """The next call's body."""
        self._version = self._dialect.version
        return self._dialect.request(self.query, longer=self._longer)

    def after(self, outcome: Outcome) -> Step:
        """What to do after a call."""
        if outcome.kind == "rate_limit":
            return AGAIN
        if outcome.kind == "transient":
            self._failures += 1
            if self._failures >= self._attempts:
                return DONE
            return Step(again=True, wait_s=max(seconds(self._backoff, self._failures), outcome.wait_s or 0.0))
        if outcome.kind == "rejected":
            change = self._dialect.adapt(outcome, self._version)
            return Step(again=bool(change), change=change)
        if outcome.kind == "answer" and outcome.reply.error is None:
            return self._after_text(outcome)
        return DONE

    def _after_text(self, outcome: Outcome) -> Step:
        reply = outcome.reply
        if tasks.get(self.query.task).answer is None:
            return DONE
        if reply.finish_reason == "length":
            if self._longer or self._dialect.cap is None:
                return DONE
            self._longer = True
            return AGAIN
        if self._resampled or "reasoning_content" in reply.extra:
            return DONE
        if verdicts.parse(reply.text, self.query.task, self.query.n_steps).status != "parse_error":
            return DONE
        self._resampled = True
        return AGAIN
