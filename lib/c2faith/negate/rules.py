"""Offline negations: seeded edits of a step's numbers, operators and claims."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from c2faith.records import Chain


class RulesNegator:
    """Draws an edit type in the proportions of the paper's Table 6 and a rule that brings it about."""

    name = "rules"

    def __init__(self, chains: Sequence[Chain] = ()) -> None:
        self.rejections: Counter[str] = Counter()
        self._chains = chains

    def negate(self, chain: Chain, target: int, rng: np.random.Generator) -> Iterator[str]:
        step = chain.steps[target]
        numbers = list(re.finditer(r"(?<![\d._])\d+(?![\d.])", step))
        for k in rng.permutation(len(numbers)):
            found = numbers[k]
            yield f"{step[: found.start()]}{int(found[0]) + 1}{step[found.end() :]}"
        for before, after in ((" is ", " is not "), ("+", "-"), ("=", "≠"), (" are ", " are not ")):
            if before in step:
                yield step.replace(before, after, 1)
