"""Negators rewrite one step so that it no longer follows; `flaw` says why a rewrite is no negation.

`make` knows them by name: ``rules`` (offline, seeded; a new rule is a function and its row in `rules.RULES`),
``recorded`` (replay of a file of causality items) and ``llm`` (the paper's: a language model that sees only the
preceding step).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from numpy.random import Generator

from c2faith.dataset.negate.claims import flaw
from c2faith.dataset.negate.rules import RulesNegator
from c2faith.records import CausalityItem, Chain, InputError, read_jsonl

TEMPERATURE, MAX_TOKENS = 0.7, 100  # the paper's sampling (Section 4.2), for whoever makes a `Complete`
ATTEMPTS = 4  # samples for a step before another step is tried


class Negator(Protocol):
    """Offers candidate rewrites of a step, best first, and keeps count of those that were rejected."""

    name: str
    rejections: Counter[str]

    def negate(self, chain: Chain, target: int, rng: Generator) -> Iterator[str]:
        """Finitely many candidates for ``chain.steps[target]``; none if the step is not for this negator."""


class Sample(Protocol):
    """What a model wrote; a text that is no answer (refused, filtered) has an `error`."""

    text: str | None
    finish_reason: str | None
    error: str | None


Complete = Callable[[Sequence[tuple[str, str]]], Sequence[Sample]]
"""(Preceding step or "", step) pairs → one fresh sample each, asked at `TEMPERATURE` and with `MAX_TOKENS`."""


def make(
    name: str,
    *,
    chains: Sequence[Chain] = (),
    recorded_path: Path | None = None,
    complete: Complete | None = None,
) -> Negator:
    """The negator ``rules``, which may take conclusions from other `chains`, ``recorded`` or ``llm``."""
    if name == "rules":
        return RulesNegator(chains)
    if name == "recorded":
        if recorded_path is None:
            raise InputError("negator 'recorded' replays a file of causality items: name it")
        return RecordedNegator(recorded_path)
    if name == "llm":
        if complete is None:
            raise InputError("negator 'llm' asks a model: name the judge endpoint that should write negations")
        return LlmNegator(complete)
    raise InputError(f"unknown negator {name!r}: choose rules, recorded or llm")


class RecordedNegator:
    """The recorded negation of a chain, at its recorded step and nowhere else; at most one a chain."""

    name = "recorded"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rejections: Counter[str] = Counter()
        self._items: dict[str, CausalityItem] = {}
        for item in read_jsonl(path, CausalityItem):
            if item.chain_id in self._items:
                raise InputError(f"{path}: chain {item.chain_id} is recorded twice; keep one")
            self._items[item.chain_id] = item

    def negate(self, chain: Chain, target: int, rng: Generator) -> Iterator[str]:
        """The recorded rewrite if `target` is the recorded step, whose text must be the recorded one."""
        item = self._items.get(chain.chain_id)
        if item is None or item.target != target:
            return
        if item.original_step != chain.steps[target]:
            raise InputError(
                f"{self.path}: chain {chain.chain_id} was recorded with another step {target}; "
                "use the recording with the chains it was made from"
            )
        yield item.perturbed_step


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

    def negate(self, chain: Chain, target: int, rng: Generator) -> Iterator[str]:
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
