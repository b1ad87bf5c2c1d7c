"""What a judge costs: prices, a forecast before the first call, a budget while it runs, a summary after.

Prices are dollars per million tokens and carry their date (`data/judges`). Hidden reasoning is billed as output.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, NonNegativeFloat, PositiveInt, ValidationError

from c2faith.judging.judges.base import Query
from c2faith.records import InputError

MILLION = 1_000_000
CHARACTERS_A_TOKEN = 3.5  # errs on the high side: prose has over four, LaTeX about three
TOKENS_A_MESSAGE, TOKENS_A_PROMPT = 4, 3  # what a chat format adds around the text
TIKTOKEN_WAIT_S = 10.0
OUTPUT_TOKENS = 200


class Prices(BaseModel):
    """Dollars per million tokens, as they were on a day.

    `batch` is the share of them that the Batch API charges; `expected_output_tokens` (a reply) serves forecasts.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    as_of: date
    source: str = ""
    input: NonNegativeFloat
    cached_input: NonNegativeFloat
    output: NonNegativeFloat
    batch: NonNegativeFloat = 1.0
    expected_output_tokens: PositiveInt = OUTPUT_TOKENS


def read_prices(judge_id: str, section: Mapping[str, Any] | None) -> Prices | None:
    """The prices of a judge's description, checked; None where it has none."""
    try:
        return None if section is None else Prices.model_validate(section)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"judge {judge_id}: prices.{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def cost(usage: Mapping[str, int], prices: Prices | None) -> float:
    """Dollars of a usage as journals keep it; 0 where there are no prices.

    ``prompt_tokens`` include the cached ones; ``batch_calls`` above 0 marks a call of the Batch API.

    >>> prices = Prices(as_of="2026-11-30", input=2, cached_input=0.5, output=8, batch=0.5)
    >>> cost({"prompt_tokens": 1_000_000, "cached_tokens": 400_000, "completion_tokens": 10_000}, prices)
    1.48
    """
    if prices is None:
        return 0.0
    cached = usage.get("cached_tokens", 0)
    fresh = usage.get("prompt_tokens", 0) - cached
    output = usage.get("completion_tokens", 0)
    dollars = (fresh * prices.input + cached * prices.cached_input + output * prices.output) / MILLION
    return dollars * (prices.batch if usage.get("batch_calls") else 1)


@cache
def encoding(model: str) -> Any | None:
    """tiktoken's encoding of a model; None where it knows none, or cannot fetch it.

    It is fetched from the network at first use, and without a network tiktoken may wait long for nothing.
    """
    import tiktoken

    try:
        name = tiktoken.encoding_name_for_model(model)
    except KeyError:
        return None
    found: list[Any] = []

    def fetch() -> None:
        with suppress(Exception):  # any failure means the same: no exact count, an estimate instead
            found.append(tiktoken.get_encoding(name))

    thread = threading.Thread(target=fetch, daemon=True)
    thread.start()
    thread.join(TIKTOKEN_WAIT_S)
    return found[0] if found else None


def prompt_tokens(messages: Iterable[tuple[str, str]], model: str) -> tuple[int, bool]:
    """(tokens of a prompt, whether they were counted and not estimated)."""
    texts, counter = [text for _, text in messages], encoding(model)
    if counter is None:
        counts = [math.ceil(len(text) / CHARACTERS_A_TOKEN) for text in texts]
    else:
        counts = [len(counter.encode(text, disallowed_special=())) for text in texts]
    return TOKENS_A_PROMPT + sum(TOKENS_A_MESSAGE + count for count in counts), counter is not None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run will take, before its first call. `dollars` is None where prices are unknown."""

    items: int
    prompt_tokens: int
    exact: bool
    output_tokens: int
    dollars: float | None

    def line(self) -> str:
        """Words for the terminal.

        >>> Forecast(900, 540_000, False, 180_000, 2.52).line()
        '900 items, about 540,000 prompt tokens (estimated), about 180,000 output tokens, forecast $2.52'
        """
        how = ("", "counted") if self.exact else ("about ", "estimated")
        cost_of_it = "no prices, so no forecast" if self.dollars is None else f"forecast ${self.dollars:.2f}"
        return (
            f"{self.items:,} items, {how[0]}{self.prompt_tokens:,} prompt tokens ({how[1]}), "
            f"about {self.output_tokens:,} output tokens, {cost_of_it}"
        )


def forecast(queries: Sequence[Query], model: str, prices: Prices | None, *, batch: bool = False) -> Forecast:
    """Items, prompt tokens and dollars of asking `queries` once each.

    Replies are taken to be as long as the prices' ``expected_output_tokens`` and no input as cached.
    """
    counts = [prompt_tokens(query.messages, model) for query in queries]
    tokens = sum(count for count, _ in counts)
    replies = len(counts) * (prices.expected_output_tokens if prices else OUTPUT_TOKENS)
    usage = {"prompt_tokens": tokens, "completion_tokens": replies, "batch_calls": int(batch)}
    dollars = cost(usage, prices) if prices else None
    return Forecast(len(counts), tokens, all(exact for _, exact in counts), replies, dollars)


class Budget:
    """Dollars that may be spent; each call reserves its likely cost first, so the limit is not passed.

    A reserve assumes the longest reply seen so far, at least twice the expected one, or the cap where one is set.
    """

    def __init__(self, limit: float, prices: Prices | None, *, batch: bool = False):
        self.limit, self.spent = limit, 0.0
        self.reached = False
        self.under_way = 0
        self._prices, self._batch = prices, batch
        self._reserved = 0.0
        self._longest = 2 * (prices.expected_output_tokens if prices else OUTPUT_TOKENS)

    def reserve(self, query: Query, cap: int | None = None) -> float | None:
        """The dollars set aside for one call, or None if they might pass the limit; `cap` is its most tokens."""
        usage = {
            "prompt_tokens": math.ceil(sum(len(text) for _, text in query.messages) / 3) + 50,
            "completion_tokens": cap or self._longest,
            "batch_calls": int(self._batch),
        }
        amount = cost(usage, self._prices)
        if self.spent + self._reserved + amount > self.limit:
            return None
        self.under_way += 1
        self._reserved += amount
        return amount

    def settle(self, amount: float | None, usage: Mapping[str, int]) -> None:
        """Replace a reserve, if there is one, by what its call cost."""
        if amount is not None:
            self.under_way -= 1
            self._reserved = self._reserved - amount if self.under_way else 0.0
        self.spent += cost(usage, self._prices)
        self._longest = max(self._longest, usage.get("completion_tokens", 0))


def summary(rows: Iterable[Mapping[str, Any]], prices: Prices | None = None) -> dict[str, float]:
    """What the calls of one journal took.

    Returns
    -------
    dict
        items, calls, retries (calls after an item's first), tokens_in (cached_tokens included), cached_tokens,
        tokens_out (reasoning_tokens included), reasoning_tokens, dollars (NaN without prices), p50_s and p95_s
        (seconds of the calls that brought a reply; NaN if none did).
    """
    rows = list(rows)
    usages = [row.get("usage") or {} for row in rows]
    seconds = [row["latency_s"] for row in rows if row.get("error") != "api_error" and row.get("latency_s")]
    items = len({(row["item_id"], row["prompt_sha256"]) for row in rows})

    def tokens(name: str) -> int:
        return sum(usage.get(name, 0) for usage in usages)

    return {
        "items": items,
        "calls": len(rows),
        "retries": len(rows) - items,
        "tokens_in": tokens("prompt_tokens"),
        "cached_tokens": tokens("cached_tokens"),
        "tokens_out": tokens("completion_tokens"),
        "reasoning_tokens": tokens("reasoning_tokens"),
        "dollars": sum(cost(usage, prices) for usage in usages) if prices else math.nan,
        "p50_s": float(np.percentile(seconds, 50)) if seconds else math.nan,
        "p95_s": float(np.percentile(seconds, 95)) if seconds else math.nan,
    }
