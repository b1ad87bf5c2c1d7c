"""Any server that speaks the OpenAI protocol as a judge: OpenAI, Azure, DeepSeek, vLLM, llama.cpp, Ollama …

The SDK is used for what it is good at, one call; when to call, whether to call again and what counts as an answer
is decided here. Every attempt is yielded, so that the journal holds what was tried, paid and read.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from tenacity.wait import wait_base

from c2faith.judging import judges, tasks
from c2faith.judging.judges import endpoint as endpoints
from c2faith.judging.judges import pricing
from c2faith.judging.judges.base import Query, Reply
from c2faith.judging.judges.concurrency import BACKOFF, PATIENCE_S, ConcurrentCalls, Hand, Limiter, pause
from c2faith.judging.judges.endpoint import Endpoint
from c2faith.judging.judges.request import Again, Attempts, Dialect
from c2faith.judging.judges.response import Response, from_completion, from_exception
from c2faith.records import InputError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

CONNECTIONS, TIMEOUT_S = 16, 600.0
GIVEN_UP = 10  # queries in a row without any answer: the server, not the query, is at fault
SLOW_S = 30.0
SETTLE_S = 0.1
_log = logging.getLogger(__name__)


class OpenAIJudge:
    """Judge behind an OpenAI-compatible endpoint.

    Parameters
    ----------
    config
        The judge's description, see `data/judges`; its parameters are fields of the request's body.
    endpoint
        Where it is reached. No part of the fingerprint: the shards of one run may ask several servers.
    timeout_s
        Deadline of one call, whatever the server does.
    attempts
        Tries of one query that may end in a broken connection, a timeout or a server error.
    backoff
        Before such a try, and after a rate limit that does not say how long it lasts.
    patience_s
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
        backoff: wait_base = BACKOFF,
        patience_s: float = PATIENCE_S,
    ):
        if connections < 1:
            raise InputError(f"CONNECTIONS={connections}: at least 1 is needed")
        self.config = dict(config)
        self.judge_id, self.model = config["judge_id"], str(config["model"])
        self.tasks = tuple(config.get("tasks") or tasks.default())
        self.prices = pricing.read_prices(self.judge_id, config.get("prices"))
        self.endpoint, self.connections, self.timeout_s = endpoint, connections, timeout_s
        self.dialect = Dialect(self.model, config.get("parameters") or {})
        self.budget = pricing.Budget(math.inf, self.prices, batch=self.batched)
        self.retries = 0
        self._most_attempts, self._backoff = attempts, backoff
        self._limiter = Limiter(backoff, patience_s)
        self._started: dict[object, float] = {}
        self._given_up = 0
        self._answered_by = {"", self.model}
        self._trouble = ""

    @property
    def fingerprint(self) -> str:
        """Hash of provider, model and parameters as they are asked for."""
        return judges.fingerprint(self.config)

    def replies(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Reply]]:
        """Ask all queries and yield every attempt; one with ``extra["will_retry"]`` is followed by another.

        If the server refuses for good (key, quota, model), keeps refusing, or cannot be reached, what was under way
        is yielded before the `InputError`.
        """
        return ConcurrentCalls(self._client, self._ask, self.connections).run(queries)

    def _client(self) -> AsyncOpenAI:
        return self.endpoint.async_client(self.connections, self.timeout_s)

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
        if self.budget.reached:
            parts.append("MAX_COST reached")
        return ", ".join(parts)

    # --- a query, however it is sent ---------------------------------------------------------------------------

    def _attempts(self, query: Query) -> Attempts:
        return Attempts(query, self.dialect, self._most_attempts, self._backoff)

    def _reserve(self, attempts: Attempts) -> bool:
        """Whether the budget has room for one more call, which is then set aside."""
        attempts.reserve = self.budget.reserve(attempts.query, attempts.cap)
        return attempts.reserve is not None

    def _after(self, attempts: Attempts, response: Response) -> tuple[Again | None, Reply]:
        """What follows an attempt, and the attempt as it is written down."""
        self._settle(attempts, response.reply.usage)
        told = self.endpoint.redacted(response.reply)
        if (name := response.reply.model) not in self._answered_by:
            self._answered_by.add(name)
            _log.warning("%s: asked for model %s, answered by %s", self.judge_id, self.model, name)
        extra = {**told.extra, **self.dialect.changed}
        if again := attempts.after(response):
            self.retries += 1
            extra["will_retry"] = True
            if again.change:
                _log.warning("%s: %s", self.judge_id, again.change)
        return again, replace(told, extra=extra)

    def _settle(self, attempts: Attempts, usage: Mapping[str, int]) -> None:
        self.budget.settle(attempts.reserve, usage)
        attempts.reserve = None

    def _budget_reached(self) -> None:
        if not self.budget.reached:
            left, limit = self.budget.limit - self.budget.spent, self.budget.limit
            text = "%s: stopping before MAX_COST is passed ($%.4g of $%.4g left); a larger one resumes"
            _log.warning(text, self.judge_id, left, limit)
        self.budget.reached = True

    def _stop(self, reason: str) -> InputError:
        return InputError(f"{self.endpoint.host}: {self.endpoint.redact(reason)}")

    # --- one by one over open connections ----------------------------------------------------------------------

    async def _ask(self, client: AsyncOpenAI, query: Query, hand: Hand, stopping: asyncio.Event) -> bool:
        attempts = self._attempts(query)
        while await self._limiter.turn(stopping):
            if not await self._room(attempts, stopping):
                return False
            response = await self._call(client, attempts)
            if response.kind == "answer":
                self._limiter.answered()
                self._given_up, self._trouble = 0, ""
            elif response.kind == "rate_limit":
                self._limiter.limited(response.wait_s)
            elif response.kind == "fatal":
                stopping.set()
            again, reply = self._after(attempts, response)
            await hand(query, reply)
            if response.kind == "fatal":
                raise self._stop(response.refusal())
            if self._limiter.out_of_patience:
                raise self._stop(
                    f"the rate limit lets nothing through ({self._limiter.waiting_s:.0f} s more to wait); "
                    "the same command resumes later"
                )
            if again is None:
                self._given_up += response.kind != "answer"
                if self._given_up >= GIVEN_UP:
                    raise self._stop(
                        f"{GIVEN_UP} queries in a row got no answer ({response.message}); "
                        "the rest stays pending, the same command resumes"
                    )
                return True
            if again.wait_s >= 1:
                self._trouble = f"waiting {again.wait_s:.0f} s: {self.endpoint.redact(response.message)[:60]}"
            if not await pause(again.wait_s, stopping):
                return False
        return False

    async def _call(self, client: AsyncOpenAI, attempts: Attempts) -> Response:
        start = time.monotonic()
        self._started[attempts] = start
        mode = self.dialect.rung
        try:
            # The whole request goes as `extra_body`: the SDK walks typed arguments field by field, which takes as
            # long as all the rest of a call, and takes no argument that only some server knows.
            async with asyncio.timeout(self.timeout_s):
                raw = await client.chat.completions.with_raw_response.create(
                    model=self.model, messages=(), extra_body=attempts.request()
                )
            try:
                body = orjson.loads(raw.content)
            except orjson.JSONDecodeError:
                body = None
            response = from_completion(body, raw.headers.get("x-request-id"))
        except Exception as error:
            response = from_exception(error)
        finally:
            del self._started[attempts]
        return replace(response, reply=replace(response.reply, latency_s=time.monotonic() - start, mode=mode))

    async def _room(self, attempts: Attempts, stopping: asyncio.Event) -> bool:
        """Room in the budget for one call; calls under way may yet cost less than they reserved."""
        while not self._reserve(attempts):
            if not self.budget.under_way or not await pause(SETTLE_S, stopping):
                self._budget_reached()
                return False
        return True


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
