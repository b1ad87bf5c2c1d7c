"""The paper's negator: a language model rewrites the step, seeing only the step before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from c2faith.judging.judges.base import Reply
from c2faith.judging.prompts import Messages, render_negation
from c2faith.records import Chain

Complete = Callable[[Messages], Reply]

TEMPERATURE, MAX_TOKENS = 0.7, 100
"""The paper's sampling (Section 4.2), for whoever makes `complete`."""
ATTEMPTS = 4
"""Samples for a step before another step is tried."""


class LlmNegator:
    """Asks a model with the prompt ``data/prompts/negation.md``.

    Parameters
    ----------
    complete
        Sends (role, content) messages to a model at `TEMPERATURE` and with `MAX_TOKENS`, and gives its
        `judges.base.Reply`. Each call is a fresh sample. A reply that is cut off, refused or failed is counted
        as a rejection, and another one is asked for. If it has a method ``expect``, that is told beforehand which
        messages will come at least.
    """

    name = "llm"

    def __init__(self, complete: Complete) -> None:
        self.rejections: Counter[str] = Counter()
        self._complete = complete

    def expect(self, asked: Iterable[tuple[Chain, int]]) -> None:
        """Say which steps (chain, index) will be asked for first, one a chain, for a forecast of the cost."""
        if hasattr(self._complete, "expect"):
            self._complete.expect([_request(chain, target) for chain, target in asked])

    def negate(self, chain: Chain, target: int, rng: np.random.Generator) -> Iterator[str]:
        """Up to `ATTEMPTS` samples; the model draws by itself, so `rng` is not used."""
        messages = _request(chain, target)
        for _ in range(ATTEMPTS):
            reply = self._complete(messages)
            if reply.error or reply.text is None:
                self.rejections[reply.error or "empty"] += 1
            elif reply.finish_reason == "length":
                self.rejections["truncated"] += 1
            else:
                yield reply.text.strip()


def _request(chain: Chain, target: int) -> Messages:
    return render_negation(chain.steps[target - 1] if target else "", chain.steps[target])
