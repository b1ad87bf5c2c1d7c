"""When the next call may go out: one shared wait for rate limits, one jittered backoff, and when to give up."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

from tenacity import RetryCallState, wait_random_exponential
from tenacity.wait import wait_base

from c2faith.judging.judges.pump import pause

BACKOFF = wait_random_exponential(multiplier=1, min=1, max=60)
STAGGER_S = 2.0  # over how long the calls that waited together go out again


def seconds(backoff: wait_base, failures: int) -> float:
    """The backoff after so many failures in a row (from 1)."""
    state = RetryCallState(retry_object=None, fn=None, args=(), kwargs={})  # type: ignore[arg-type]
    state.attempt_number = failures
    return float(backoff(state))


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds a server asks to wait, from ``retry-after-ms`` or ``retry-after`` (seconds or an HTTP date).

    >>> retry_after({"retry-after": "34"})
    34.0
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            wait = float(value) * unit
        except ValueError:
            continue
        return wait if 0 <= wait < float("inf") else None
    try:
        until = parsedate_to_datetime(headers.get("retry-after", "")).timestamp()
    except (ValueError, TypeError):
        return None
    return max(0.0, until - (time.time() if now is None else now))


class Limiter:
    """Lets calls go out; after a rate limit all of them wait together.

    After a wait the calls go out staggered, so that a limit still in force is met by few of them.

    Parameters
    ----------
    backoff : tenacity wait
        Used where the server does not say how long to wait.
    patience_s : float
        How long a rate limit may let nothing through.
    """

    def __init__(
        self,
        backoff: wait_base = BACKOFF,
        patience_s: float = 1800.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._backoff, self._patience_s, self._clock = backoff, patience_s, clock
        self._until = 0.0
        self._bursts = 0
        self._blocked_since: float | None = None

    @property
    def waiting_s(self) -> float:
        """Seconds left of the shared wait."""
        return max(0.0, self._until - self._clock())

    async def turn(self, stopping: asyncio.Event) -> bool:
        """Wait as long as the rate limit demands; False if the run stops meanwhile."""
        while (wait := self.waiting_s) > 0:
            if not await pause(wait + random.uniform(0, min(wait, STAGGER_S)), stopping):
                return False
        return not stopping.is_set()

    def answered(self) -> None:
        """The server gave an answer: no limit is in force."""
        self._bursts, self._blocked_since = 0, None

    def limited(self, wait: float | None) -> None:
        """The server refused a call for its rate; `wait` is what it asks for, if it does.

        Calls refused while the wait is already on belong to the same burst and do not lengthen it, unless the
        server asks for more.
        """
        now = self._clock()
        if self._blocked_since is None:
            self._blocked_since = now
        if wait is None:
            if now < self._until:
                return
            self._bursts += 1
            wait = seconds(self._backoff, self._bursts)
        self._until = max(self._until, now + wait)

    @property
    def out_of_patience(self) -> bool:
        """Whether the limit has let nothing through, or would let nothing through, for too long."""
        return self._blocked_since is not None and self._until - self._blocked_since > self._patience_s
