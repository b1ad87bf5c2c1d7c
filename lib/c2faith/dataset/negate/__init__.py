"""Negators rewrite one step so that it no longer follows; `flaw` says why a rewrite is no negation.

`make` knows them by name: ``rules`` (offline, seeded), ``recorded`` (replay of a file of causality items) and
``llm`` (the paper's: a language model that sees only the preceding step).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from c2faith.dataset.negate.llm import Complete, LlmNegator
from c2faith.dataset.negate.recorded import RecordedNegator
from c2faith.dataset.negate.rules import RulesNegator
from c2faith.dataset.negate.validate import flaw
from c2faith.records import Chain, InputError

__all__ = ["LlmNegator", "Negator", "RecordedNegator", "RulesNegator", "flaw", "make"]


class Negator(Protocol):
    """Offers candidate rewrites of a step, best first, and keeps count of those that were rejected."""

    name: str
    rejections: Counter[str]

    def negate(self, chain: Chain, target: int, rng: np.random.Generator) -> Iterator[str]:
        """Finitely many candidates for ``chain.steps[target]``; none if the step is not for this negator."""


def make(
    name: str,
    *,
    chains: Sequence[Chain] = (),
    recorded_path: Path | None = None,
    complete: Complete | None = None,
) -> Negator:
    """The negator of that name.

    Parameters
    ----------
    chains
        For ``rules``: where a conclusion from another chain may come from.
    recorded_path
        For ``recorded``: a JSON lines file of `records.CausalityItem` rows.
    complete
        For ``llm``: asks a model (see `llm.LlmNegator`).
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
