"""Negators rewrite one step so that it no longer follows; `flaw` says why a rewrite is no negation.

`make` knows them by name: ``rules`` (offline, seeded; a new rule is a function and its row in `rules.RULES`),
``recorded`` (replay of a file of causality items) and ``llm`` (the paper's: a language model that sees only the
preceding step).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from numpy.random import Generator

from c2faith.dataset.negate.claims import flaw
from c2faith.dataset.negate.llm import Complete, LlmNegator
from c2faith.dataset.negate.rules import RulesNegator
from c2faith.records import CausalityItem, Chain, InputError, read_jsonl

__all__ = ["Complete", "LlmNegator", "Negator", "RecordedNegator", "RulesNegator", "flaw", "make"]


class Negator(Protocol):
    """Offers candidate rewrites of a step, best first, and keeps count of those that were rejected."""

    name: str
    rejections: Counter[str]

    def negate(self, chain: Chain, target: int, rng: Generator) -> Iterator[str]:
        """Finitely many candidates for ``chain.steps[target]``; none if the step is not for this negator."""


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


def make(
    name: str,
    *,
    chains: Sequence[Chain] = (),
    recorded_path: Path | None = None,
    complete: Complete | None = None,
) -> Negator:
    """The negator of that name.

    ``rules`` may take a conclusion from another of the `chains`; ``recorded`` reads JSON lines of
    `records.CausalityItem` rows; ``llm`` has the model `complete` (see `llm.LlmNegator`).
    """
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
