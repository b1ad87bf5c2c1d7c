"""Offline negations: seeded edits of a step, aimed at the edit types in the paper's proportions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.random import Generator

from c2faith.dataset.edits import EDIT_TYPES, edit_type, similarity
from c2faith.dataset.negate.claims import Edit, apply
from c2faith.dataset.negate.formulas import math_edits
from c2faith.dataset.negate.wording import denials, false_endings, leading_denials, opposites
from c2faith.records import Chain

Rule = Callable[[str], Iterator[Edit]]
RULES: tuple[Rule, ...] = (math_edits, opposites, denials, leading_denials, false_endings)
"""Each gives the edits of a step that make it wrong. A new rule is a function and a row here."""
TABLE6 = dict(zip(EDIT_TYPES, (130, 117, 161, 37, 5), strict=False))
"""How many of the paper's 450 negations were of each type (Table 6)."""
WEIGHTS = dict(zip(EDIT_TYPES, (84, 123, 163, 75, 5), strict=False))
"""Chances (of 450) with which a type is aimed at: found by iterative proportional fitting over the sets of types
that CHAMP's middle steps allow, they bring the realized mix near `TABLE6`."""
_BANDS = {"minor_rewrite": (0.8, 0.9), "moderate_rewrite": (0.5, 0.8)}
_KINDS = {"numeric_swap": ["number"], "operator_swap": ["operator", "relation", "operation", "term"]}
_ONCE = {"relation", "opposite", "operation"}
MAX_EDITS, DRAWS = 3, 12


def edits(step: str) -> list[Edit]:
    """What all rules offer for a step."""
    return [edit for rule in RULES for edit in rule(step)]


class RulesNegator:
    """Draws an edit type in the proportions of `TABLE6`, if the step allows it, and edits that bring it about.

    A major rewrite is a step of another problem of `chains`.
    """

    name = "rules"

    def __init__(self, chains: Sequence[Chain] = ()) -> None:
        self.rejections: Counter[str] = Counter()
        self._chains = chains

    def negate(self, chain: Chain, target: int, rng: Generator) -> Iterator[str]:
        """Candidates by edit type, the types in a weighted random order, up to `DRAWS` of each."""
        step = chain.steps[target]
        weights = np.array(list(WEIGHTS.values()), dtype=float)
        order = rng.choice(list(WEIGHTS), size=len(WEIGHTS), replace=False, p=weights / weights.sum())
        pool = edits(step)
        plain = [edit for edit in pool if edit.kind != "frame"]
        for aimed in map(str, order):
            if aimed == "major_rewrite" and aimed != order[0]:
                continue
            seen = {""}
            for attempt in range(DRAWS):
                offered = pool if attempt > DRAWS // 2 else plain
                if aimed == "major_rewrite":
                    candidate = self._foreign(chain, target, rng)
                elif aimed in _BANDS:
                    candidate = _compose(step, offered, _BANDS[aimed], rng)
                else:
                    chosen = _shuffled([edit for edit in offered if edit.kind in _KINDS[aimed]], rng)[:1]
                    candidate = apply(step, chosen) if chosen else ""
                if candidate not in seen and edit_type(step, candidate) == aimed:
                    seen.add(candidate)
                    yield candidate
        for edit in _shuffled(pool, rng):
            yield apply(step, [edit])

    def _foreign(self, chain: Chain, target: int, rng: Generator) -> str:
        others = [other for other in self._chains if other.problem_id != chain.problem_id]
        if not others:
            return ""
        steps = others[int(rng.integers(len(others)))].steps
        return steps[min(len(steps) - 1, round(target * len(steps) / len(chain.steps)))]


def _compose(step: str, edits: list[Edit], band: tuple[float, float], rng: Generator) -> str:
    # Edits are made in a random order, those of one statement first, until the similarity is in the band.
    low, high = band
    order = _shuffled(edits, rng, by_size=True)
    chosen: list[Edit] = []
    for edit in sorted(order, key=lambda edit: edit.scope != order[0].scope):
        if any(_clash(edit, other) for other in chosen):
            continue
        ratio = similarity(step, apply(step, [*chosen, edit]))
        if ratio < low:
            continue
        chosen.append(edit)
        if ratio <= high:
            return apply(step, chosen)
        if len(chosen) == (MAX_EDITS if edit.scope == order[0].scope >= 0 else 2):
            break
    return ""


def _shuffled(edits: list[Edit], rng: Generator, *, by_size: bool = False) -> list[Edit]:
    if not edits:
        return []
    sizes = [sum(end - start + len(text) for start, end, text in edit.parts) if by_size else 1 for edit in edits]
    weights = np.array([edit.weight * size for edit, size in zip(edits, sizes, strict=True)])
    return [edits[i] for i in rng.choice(len(edits), size=len(edits), replace=False, p=weights / weights.sum())]


def _clash(edit: Edit, other: Edit) -> bool:
    # Two edits overlap or could undo each other: what is denied must not be changed too.
    kinds = {edit.kind, other.kind}
    overlap = any(a[0] <= b[1] and b[0] <= a[1] for a in edit.parts for b in other.parts)
    undone = kinds <= _ONCE or ("relation" in kinds and edit.scope == other.scope)
    return overlap or undone or bool(kinds & {"denial", "frame"})
