"""Many calls at once as a plain generator, and one wait for all of them where the server limits their rate.

The event loop runs in a thread of its own, so this works under Jupyter's running loop too. A worker goes on only
when the consumer has come back for more, that is, when its last reply is in the journal: at any moment at most
`connections` calls are on the way or not yet written, and memory does not grow with the number of queries.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import random
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

from tenacity import RetryCallState, wait_random_exponential
from tenacity.wait import wait_base

from c2faith.judging.judges.base import Query, Reply

BACKOFF = wait_random_exponential(multiplier=1, min=1, max=60)
PATIENCE_S = 1800.0
STAGGER_S = 2.0  # over how long the calls that waited together go out again
SCOUT_S = 2.0  # for how long the first query goes alone
Clock = Callable[[], float]
Hand = Callable[[Query, Reply], Awaitable[None]]
Ask = Callable[[Any, Query, Hand, asyncio.Event], Awaitable[bool]]
_log = logging.getLogger(__name__)


class ConcurrentCalls:
    """The calls of one run.

    `client` makes, within the loop, what the calls go through; `ask` answers one query through it, hands over each
    attempt, and returns False if no more queries should be taken. The event is set when the run is to stop.
    """

    def __init__(self, client: Callable[[], AbstractAsyncContextManager[Any]], ask: Ask, connections: int):
        self._client, self._ask, self._connections = client, ask, connections
        self._handed: queue.SimpleQueue[tuple[Query, Reply, asyncio.Future[None]] | None] = queue.SimpleQueue()
        self._workers: list[asyncio.Task[None]] = []
        self._error: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._stopping, self._scouted = asyncio.Event(), asyncio.Event()

    def run(self, queries: Iterable[Query]) -> Iterator[tuple[Query, Reply]]:
        """Yield every attempt as it comes.

        An error in `ask` stops the run: the calls under way are still yielded, then it is raised. So is a keyboard
        interrupt; a second one, or closing the generator, drops the calls under way.
        """
        thread = threading.Thread(target=self._thread, args=(iter(queries),), daemon=True)
        thread.start()
        try:
            try:
                yield from self._take()
            except KeyboardInterrupt:
                _log.warning("stopping: the calls under way are waited for; interrupt again to drop them")
                self._call(self._stopping.set)
                yield from self._take()
                raise
        finally:
            self._call(self._drop)
            thread.join()
        if self._error is not None:
            raise self._error

    def _take(self) -> Iterator[tuple[Query, Reply]]:
        written = []
        while (handed := self._handed.get()) is not None:
            yield handed[0], handed[1]
            written.append(handed[2])
            if self._handed.empty():  # one wake-up of the loop for all that came together
                self._call(lambda futures=written: [future.done() or future.set_result(None) for future in futures])
                written = []

    def _call(self, function: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(function)

    def _thread(self, queries: Iterator[Query]) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve(queries))
        except BaseException as error:
            self._error = self._error or error
        finally:
            self._handed.put(None)

    # What follows runs in the loop's thread.

    async def _serve(self, queries: Iterator[Query]) -> None:
        async with self._client() as client:

            def begin(count: int) -> None:
                self._workers += [asyncio.create_task(self._work(client, queries)) for _ in range(count)]

            # A refused key or parameter costs one call, not one per connection. A refusal comes fast, so nobody
            # waits for a slow answer.
            begin(1)
            await pause(SCOUT_S, self._scouted)
            begin(self._connections - 1)
            await asyncio.gather(*self._workers, return_exceptions=True)

    async def _work(self, client: Any, queries: Iterator[Query]) -> None:
        try:
            while not self._stopping.is_set() and (query := next(queries, None)) is not None:
                if not await self._ask(client, query, self._hand, self._stopping):
                    return
        except Exception as error:
            self._error = self._error or error
            self._stopping.set()
        finally:
            self._scouted.set()

    async def _hand(self, query: Query, reply: Reply) -> None:
        if not reply.extra.get("will_retry"):
            self._scouted.set()
        written = self._loop.create_future()
        self._handed.put((query, reply, written))
        await written

    def _drop(self) -> None:
        self._stopping.set()
        for worker in self._workers:
            worker.cancel()


async def pause(seconds: float, stopping: asyncio.Event) -> bool:
    """Wait, unless the run is stopping or begins to: then False at once."""
    if seconds <= 0:
        return not stopping.is_set()
    try:
        await asyncio.wait_for(stopping.wait(), seconds)
    except TimeoutError:
        return True
    return False


def backoff_s(backoff: wait_base, failures: int) -> float:
    """Seconds to wait after so many failures in a row (from 1)."""
    state = RetryCallState(retry_object=None, fn=None, args=(), kwargs={})  # type: ignore[arg-type]
    state.attempt_number = failures
    return float(backoff(state))


class Limiter:
    """Lets calls go out; after a rate limit all of them wait together.

    After a wait the calls go out staggered, so that a limit still in force is met by few of them. `backoff` is for
    where the server does not say how long to wait; for `patience_s` a rate limit may let nothing through.
    """

    def __init__(self, backoff: wait_base = BACKOFF, patience_s: float = PATIENCE_S, clock: Clock = time.monotonic):
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
            wait = backoff_s(self._backoff, self._bursts)
        self._until = max(self._until, now + wait)

    @property
    def out_of_patience(self) -> bool:
        """Whether the limit has let nothing through, or would let nothing through, for too long."""
        return self._blocked_since is not None and self._until - self._blocked_since > self._patience_s
