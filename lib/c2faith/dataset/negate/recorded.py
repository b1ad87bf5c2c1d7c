"""Replay of negations that were made before, from a file of causality items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from c2faith.records import CausalityItem, Chain, InputError, read_jsonl


class RecordedNegator:
    """The recorded negation of a chain, at its recorded step and nowhere else.

    Parameters
    ----------
    path
        JSON lines of `records.CausalityItem`, at most one per chain.
    """

    name = "recorded"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rejections: Counter[str] = Counter()
        self._items: dict[str, CausalityItem] = {}
        for item in read_jsonl(path, CausalityItem):
            if item.chain_id in self._items:
                raise InputError(f"{path}: chain {item.chain_id} is recorded twice; keep one")
            self._items[item.chain_id] = item

    def negate(self, chain: Chain, target: int, rng: np.random.Generator) -> Iterator[str]:
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
