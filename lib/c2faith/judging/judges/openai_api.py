"""Any server that speaks the OpenAI protocol as a judge: OpenAI, Azure, DeepSeek, vLLM, llama.cpp, Ollama …

The SDK is used for what it is good at, one call; when to call, whether to call again and what counts as an answer
is decided here. Every attempt is yielded, so that the journal holds what was tried, paid and read.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from tenacity.wait import wait_base

from c2faith.judging import judges
from c2faith.judging.judges import endpoint as endpoints
from c2faith.judging.judges import limiter, pricing
from c2faith.judging.judges.base import Query, Reply
from c2faith.judging.judges.course import Course, Step
from c2faith.judging.judges.dialect import Dialect
from c2faith.judging.judges.endpoint import Endpoint
from c2faith.judging.judges.outcome import Outcome, from_completion, from_exception, refusal
from c2faith.judging.judges.pump import Hand, Pump, pause
from c2faith.records import InputError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

CONNECTIONS, TIMEOUT_S = 16, 600.0
GIVEN_UP = 10  # queries in a row without any answer: the server, not the query, is at fault
SLOW_S = 30.0
SCOUT_S, SETTLE_S = 2.0, 0.1
TASKS: tuple[str, ...] = ("detection", "localization", "coverage")  # what else there is costs more: TASKS=…
_log = logging.getLogger(__name__)


class OpenAIJudge:
    """Judge behind an OpenAI-compatible endpoint.

    Parameters
    ----------
    config : mapping
        The judge's description: judge_id, provider, model, and where it has them parameters (fields of the
        request's body: temperature, max_tokens, seed, reasoning_effort …), prices and tasks.
    endpoint : Endpoint
        Where it is reached. No part of the fingerprint: the shards of one run may ask several servers.
    connections : int
        Calls under way at once.
    timeout_s : float
        Deadline of one call, whatever the server does.
    attempts : int
        Tries of one query that end in a broken connection, a timeout or a server error.
    backoff : tenacity wait
        Before such a try, and after a rate limit that does not say how long it lasts.
    patience_s : float
        How long a rate limit may let nothing through before the run is ended, to be resumed.
    """

    batched = False

    def __init__(
        self,
        config: Mapping[str, Any],
        endpoint: Endpoint,
        *,
        connections: int = CONNECTIONS,
        timeout_s: float = TIMEOUT_S,
        attempts: int = 6,
        backoff: wait_base = limiter.BACKOFF,
        patience_s: float = 1800.0,
    ):
        if connections < 1:
            raise InputError(f"CONNECTIONS={connections}: at least 1 is needed")
        self.config = dict(config)
        self.judge_id, self.model = config["judge_id"], str(config["model"])
        self.tasks = tuple(config.get("tasks") or TASKS)
        self.prices = pricing.read_prices(self.judge_id, config.get("prices"))
        self.endpoint, self.connections, self.timeout_s = endpoint, connections, timeout_s
        self.dialect = Dialect(self.model, config.get("parameters") or {})
        self.budget: pricing.Budget | None = None
        self.retries = 0
        self._attempts, self._backoff = attempts, backoff
        self._limiter = limiter.Limiter(backoff, patience_s)
        self._started: dict[object, float] = {}
        self._given_up = 0
        self._answered_by: set[str] = set()
        self._trouble = ""
        self._warned_of_budget = False

    @property
    def fingerprint(self) -> str:
        """Hash of provider, model and parameters as they are asked for."""
        return judges.fingerprint(self.config)

    def replies(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Reply]]:
        """Ask all queries, `connections` at a time; every attempt is yielded as it comes.

        An attempt with ``extra["will_retry"]`` is followed by another one.

        Raises
        ------
        InputError
            If the server refuses for good (key, quota, model), keeps refusing, or cannot be reached; what was
            under way is yielded first.
        """
        return Pump(self._session, self.connections).run(queries)

    def price(self, usage: Mapping[str, int]) -> float:
        """Dollars of one call's usage."""
        return pricing.cost(usage, self.prices)

    def limit_spending(self, dollars: float) -> None:
        """Start no call that might take what is spent from now on past so many dollars."""
        if self.prices is None:
            raise InputError(
                f"MAX_COST: judge {self.judge_id} has no prices; copy data/judges/gpt-4.1.yaml, put your model and "
                "its prices there, and name that YAML as JUDGE"
            )
        self._warned_of_budget = False
        self.budget = pricing.Budget(dollars, self.prices, batch=self.batched)

    def status(self) -> str:
        """Why nothing comes back just now, for the progress line; empty while all is well."""
        parts = []
        if (wait := self._limiter.waiting_s) > 0:
            parts.append(f"waiting {wait:.0f} s: rate limit")
        elif self._trouble:
            parts.append(self._trouble)
        started = list(self._started.values())
        if started and (oldest := time.monotonic() - min(started)) > SLOW_S:
            parts.append(f"{len(started)} calls under way, the oldest for {oldest:.0f} s")
        if self.retries:
            parts.append(f"{self.retries} retries")
        if self._warned_of_budget:
            parts.append("MAX_COST reached")
        return ", ".join(parts)

    # --- one run ---------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _session(self, stopping: asyncio.Event) -> AsyncIterator[Callable[[Query, Hand], Any]]:
        scouted = asyncio.Event()
        asked = itertools.count()

        async def ask(query: Query, hand: Hand) -> bool:
            # The first query goes alone for a moment: a refused key or parameter costs one call, not one per
            # connection. A refusal comes fast, so nobody waits for a slow answer.
            if next(asked) and not scouted.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(scouted.wait(), SCOUT_S)
            try:
                return await self._ask(client, query, hand, stopping, scouted)
            finally:
                scouted.set()

        async with self.endpoint.async_client(self.connections, self.timeout_s) as client:
            yield ask

    async def _ask(
        self, client: AsyncOpenAI, query: Query, hand: Hand, stopping: asyncio.Event, scouted: asyncio.Event
    ) -> bool:
        course = Course(query, self.dialect, self._attempts, self._backoff)
        while await self._limiter.turn(stopping):
            if (reserve := await self._reserve(course, stopping)) is None:
                return False
            outcome = await self._call(client, course)
            if self.budget:
                self.budget.settle(reserve, outcome.reply.usage)
            if outcome.kind == "answer":
                self._limiter.answered()
                self._given_up, self._trouble = 0, ""
                scouted.set()
            elif outcome.kind == "rate_limit":
                self._limiter.limited(outcome.wait_s)
            elif outcome.kind == "fatal":
                stopping.set()
            step, reply = self._after(course, outcome)
            await hand(query, reply)
            if outcome.kind == "fatal":
                raise InputError(f"{self.endpoint.host}: {self.endpoint.redact(refusal(outcome))}")
            if self._limiter.out_of_patience:
                raise InputError(
                    f"{self.endpoint.host}: the rate limit lets nothing through "
                    f"({self._limiter.waiting_s:.0f} s more to wait); the same command resumes later"
                )
            if not step.again:
                if outcome.kind != "answer":
                    self._give_up(outcome)
                return True
            if step.wait_s >= 1:
                self._trouble = f"waiting {step.wait_s:.0f} s: {self.endpoint.redact(outcome.message)[:60]}"
            if not await pause(step.wait_s, stopping):
                return False
        return False

    async def _call(self, client: AsyncOpenAI, course: Course) -> Outcome:
        start = time.monotonic()
        self._started[course] = start
        mode = self.dialect.rung
        try:
            # The whole request goes as `extra_body`: the SDK walks typed arguments field by field, which takes as
            # long as all the rest of a call, and takes no argument that only some server knows.
            async with asyncio.timeout(self.timeout_s):
                response = await client.chat.completions.with_raw_response.create(
                    model=self.model, messages=(), extra_body=course.request()
                )
            try:
                body = orjson.loads(response.content)
            except orjson.JSONDecodeError:
                body = None
            outcome = from_completion(body, response.headers.get("x-request-id"))
        except Exception as error:
            outcome = from_exception(error)
        finally:
            del self._started[course]
        reply = replace(outcome.reply, latency_s=time.monotonic() - start, mode=mode)
        return replace(outcome, reply=reply)

    def _after(self, course: Course, outcome: Outcome) -> tuple[Step, Reply]:
        """What follows an attempt, and the attempt as it is written down."""
        self._check_model(outcome.reply.model)
        told = self.endpoint.redacted(outcome.reply)
        extra = {**told.extra, **self.dialect.changed}
        step = course.after(outcome)
        if step.change:
            _log.warning("%s: %s", self.judge_id, step.change)
        if step.again:
            self.retries += 1
            extra["will_retry"] = True
        return step, replace(told, extra=extra)

    async def _reserve(self, course: Course, stopping: asyncio.Event) -> float | None:
        """Room in the budget for one call; calls under way may yet cost less than they reserved."""
        if self.budget is None:
            return 0.0
        while (reserve := self.budget.reserve(course.query, course.cap)) is None:
            if not self.budget.under_way or not await pause(SETTLE_S, stopping):
                self._warn_of_budget()
                return None
        return reserve

    def _warn_of_budget(self) -> None:
        if not self._warned_of_budget:
            self._warned_of_budget = True
            left, limit = self.budget.limit - self.budget.spent, self.budget.limit
            text = "%s: stopping before MAX_COST is passed ($%.4g of $%.4g left); a larger one resumes"
            _log.warning(text, self.judge_id, left, limit)

    def _give_up(self, outcome: Outcome) -> None:
        self._given_up += 1
        if self._given_up >= GIVEN_UP:
            raise InputError(
                f"{self.endpoint.host}: {GIVEN_UP} queries in a row got no answer "
                f"({self.endpoint.redact(outcome.message)}); the rest stays pending, the same command resumes"
            )

    def _check_model(self, name: str) -> None:
        if name and name != self.model and name not in self._answered_by:
            _log.warning("%s: asked for model %s, answered by %s", self.judge_id, self.model, name)
        self._answered_by.add(name)


def from_config(
    config: Mapping[str, Any],
    *,
    base_url: str | None = None,
    connections: int = CONNECTIONS,
    batch: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> OpenAIJudge:
    """The judge of a description, its endpoint and key from the environment or `.env`.

    `batch` is the run's folder if the Batch API is to be used: its tickets are kept there.
    """
    env = endpoints.environment() if env is None else env
    place = endpoints.find(config["provider"], env, base_url)
    if batch is not None:
        from c2faith.judging.judges.batch_api import BatchJudge

        return BatchJudge(config, place, batch / "batches")
    return OpenAIJudge(config, place, connections=connections)
