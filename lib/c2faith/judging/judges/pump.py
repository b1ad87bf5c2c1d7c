"""From an asynchronous asker to a plain generator: many calls at once, each reply handed over and acknowledged.

The event loop runs in a thread of its own, so this works under Jupyter's running loop too. A worker goes on only
when the consumer has come back for more, that is, when its last reply is in the journal: at any moment at most
`connections` calls are on the way or not yet written, and memory does not grow with the number of queries.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, suppress

from c2faith.judging.judges.base import Query, Reply

Hand = Callable[[Query, Reply], Awaitable[None]]
Ask = Callable[[Query, Hand], Awaitable[bool]]
Session = Callable[[asyncio.Event], AbstractAsyncContextManager[Ask]]
_log = logging.getLogger(__name__)


async def pause(seconds: float, stopping: asyncio.Event) -> bool:
    """Wait, unless the run is stopping or begins to: then False at once."""
    if seconds <= 0:
        return not stopping.is_set()
    try:
        await asyncio.wait_for(stopping.wait(), seconds)
    except TimeoutError:
        return True
    return False


class Pump:
    """Ask queries over many connections; made for one run.

    Parameters
    ----------
    session
        Opens, within the loop, what the calls need, and gives `ask`, which answers one query, hands over each
        attempt, and returns False if no more queries should be taken. It gets the event that is set when the
        run is to stop.
    connections : int
        Queries under way at once.
    """

    def __init__(self, session: Session, connections: int):
        self._session, self._connections = session, connections
        self._handed: queue.SimpleQueue[tuple[Query, Reply, asyncio.Future[None]] | None] = queue.SimpleQueue()
        self._written: list[asyncio.Future[None]] = []
        self._workers: list[asyncio.Task[None]] = []
        self._error: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()

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
        while (handed := self._handed.get()) is not None:
            yield handed[0], handed[1]
            self._written.append(handed[2])
            if self._handed.empty():  # one wake-up of the loop for all that came together
                written, self._written = self._written, []
                self._call(lambda written=written: [future.done() or future.set_result(None) for future in written])

    def _call(self, function: Callable[[], object]) -> None:
        """Run a function in the loop's thread, unless the loop has ended."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function)

    # --- in the loop's thread --------------------------------------------------------------------------------

    def _thread(self, queries: Iterator[Query]) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve(queries))
        except BaseException as error:
            self._error = self._error or error
        finally:
            self._handed.put(None)

    async def _serve(self, queries: Iterator[Query]) -> None:
        async with self._session(self._stopping) as ask:
            self._workers = [asyncio.create_task(self._work(ask, queries)) for _ in range(self._connections)]
            await asyncio.gather(*self._workers, return_exceptions=True)

    async def _work(self, ask: Ask, queries: Iterator[Query]) -> None:
        try:
            while not self._stopping.is_set() and (query := next(queries, None)) is not None:
                if not await ask(query, self._hand):
                    return
        except Exception as error:
            self._error = self._error or error
            self._stopping.set()

    async def _hand(self, query: Query, reply: Reply) -> None:
        written = self._loop.create_future()
        self._handed.put((query, reply, written))
        await written

    def _drop(self) -> None:
        self._stopping.set()
        for worker in self._workers:
            worker.cancel()
