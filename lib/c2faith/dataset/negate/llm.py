"""The paper's negator: a language model rewrites the step, seeing only the step before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np

from c2faith.dataset.negate.claims import flaw
from c2faith.records import Chain

TEMPERATURE, MAX_TOKENS = 0.7, 100
"""The paper's sampling (Section 4.2), for whoever makes `complete`."""
ATTEMPTS = 4
"""Samples for a step before another step is tried."""


class Sample(Protocol):
    """What a model wrote; a text that is no answer (refused, filtered) has an `error`."""

    text: str | None
    finish_reason: str | None
    error: str | None


Complete = Callable[[Sequence[tuple[str, str]]], Sequence[Sample]]
"""(Preceding step or "", step) pairs → one fresh sample each, asked at `TEMPERATURE` and with `MAX_TOKENS`."""


class LlmNegator:
    """Asks a model for rewrites; a sample that is cut off, refused or empty is counted as a rejection."""

    name = "llm"

    def __init__(self, complete: Complete) -> None:
        self.rejections: Counter[str] = Counter()
        self._complete = complete
        self._samples: dict[tuple[str, int], list[Sample]] = {}

    def ask(self, tried: Iterable[tuple[Chain, Sequence[int]]]) -> None:
        """Have samples at hand for chains whose steps are tried in a given order (0-based), asked in rounds.

        A round is one call: the first sample for every chain, then the next for each whose last one is no negation,
        be it of the same step or, after `ATTEMPTS`, of the next one. What is asked depends on the samples alone.
        """
        waiting = [(chain, [step for step in steps for _ in range(ATTEMPTS)]) for chain, steps in tried]
        while waiting := [(chain, steps) for chain, steps in waiting if steps]:
            asked = [(chain, steps.pop(0)) for chain, steps in waiting]
            samples = self._complete(
                [(chain.steps[step - 1] if step else "", chain.steps[step]) for chain, step in asked]
            )
            for (chain, step), (_, left), sample in zip(asked, waiting, samples, strict=True):
                self._samples.setdefault((chain.chain_id, step), []).append(sample)
                if not _rejected(sample) and not flaw(chain.steps[step], sample.text.strip()):
                    left.clear()

    def negate(self, chain: Chain, target: int, rng: np.random.Generator) -> Iterator[str]:
        """Up to `ATTEMPTS` samples, asked now if they were not before; the model draws, so `rng` is not used."""
        key = chain.chain_id, target
        if key not in self._samples:
            self.ask([(chain, [target])])
        for sample in self._samples.pop(key):
            if reason := _rejected(sample):
                self.rejections[reason] += 1
            else:
                yield sample.text.strip()


def _rejected(sample: Sample) -> str:
    if sample.error or sample.text is None:
        return sample.error or "empty"
    return "truncated" if sample.finish_reason == "length" else ""
