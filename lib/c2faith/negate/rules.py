"""Offline negations: seeded edits of a step, aimed at the edit types in the paper's proportions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from c2faith.edits import edit_type, similarity
from c2faith.negate.swaps import Edit, apply, math_edits
from c2faith.negate.wording import word_edits
from c2faith.records import Chain

TABLE6 = {
    "numeric_swap": 130,
    "operator_swap": 117,
    "minor_rewrite": 161,
    "moderate_rewrite": 37,
    "major_rewrite": 5,
}
"""How many of the paper's 450 negations were of each type (Table 6)."""

WEIGHTS = {
    "numeric_swap": 87,
    "operator_swap": 110,
    "minor_rewrite": 174,
    "moderate_rewrite": 74,
    "major_rewrite": 5,
}
"""Chances (of 450) with which a type is aimed at.

Not every step allows every type: of CHAMP's middle steps 66% allow a numeric swap, 57% an operator swap, 56% a minor
and 27% a moderate rewrite. These weights, found by iterative proportional fitting over the sets of types that the
steps allow, bring the realized mix near `TABLE6`.
"""

_BANDS = {"minor_rewrite": (0.8, 0.9), "moderate_rewrite": (0.5, 0.8)}
_ONCE = {"relation", "opposite", "operation"}
MAX_EDITS, DRAWS = 2, 10


class RulesNegator:
    """Draws an edit type in the proportions of `TABLE6` and edits that bring it about.

    Types that a step does not allow are left out, the rest keep their proportions; the realized mix therefore
    differs from the table where steps are short or hold no mathematics.

    Parameters
    ----------
    chains
        Whose steps may be taken for a major rewrite; chains of the same problem are not used.
    """

    name = "rules"

    def __init__(self, chains: Sequence[Chain] = ()) -> None:
        self.rejections: Counter[str] = Counter()
        self._chains = chains

    def negate(self, chain: Chain, target: int, rng: np.random.Generator) -> Iterator[str]:
        """Candidates by edit type, the types in a weighted random order, up to `DRAWS` of each."""
        step = chain.steps[target]
        weights = np.array(list(WEIGHTS.values()), dtype=float)
        order = rng.choice(list(WEIGHTS), size=len(WEIGHTS), replace=False, p=weights / weights.sum())
        pool = [*math_edits(step), *word_edits(step)]
        for aimed in order:
            if aimed == "major_rewrite" and aimed != order[0]:
                continue
            seen = set()
            for _ in range(DRAWS):
                candidate = self._draw(str(aimed), chain, target, pool, rng)
                if candidate is not None and candidate not in seen and edit_type(step, candidate) == aimed:
                    seen.add(candidate)
                    yield candidate
        weights = np.array([edit.weight for edit in pool])
        for i in rng.choice(len(pool), size=len(pool), replace=False, p=weights / weights.sum()) if pool else ():
            yield apply(step, [pool[i]])

    def _draw(
        self, aimed: str, chain: Chain, target: int, pool: list[Edit], rng: np.random.Generator
    ) -> str | None:
        step = chain.steps[target]
        if aimed == "major_rewrite":
            return self._foreign(chain, target, rng)
        kinds = {"numeric_swap": {"number"}, "operator_swap": {"operator", "relation", "operation", "term"}}.get(
            aimed
        )
        edits = [edit for edit in pool if kinds is None or edit.kind in kinds]
        if not edits:
            return None
        if kinds is None:
            return _compose(step, edits, _BANDS[aimed], rng)
        weights = np.array([edit.weight for edit in edits])
        return apply(step, [edits[int(rng.choice(len(edits), p=weights / weights.sum()))]])

    def _foreign(self, chain: Chain, target: int, rng: np.random.Generator) -> str | None:
        """A step of another problem's chain, of similar length and position."""
        others = [other for other in self._chains if other.problem_id != chain.problem_id]
        if not others:
            return None
        other = others[int(rng.integers(len(others)))]
        place = min(len(other.steps) - 1, round(target * len(other.steps) / len(chain.steps)))
        return other.steps[place]


def _compose(step: str, edits: list[Edit], band: tuple[float, float], rng: np.random.Generator) -> str | None:
    """Make edits in a random order, those of one statement first, until the similarity is in the band."""
    low, high = band
    weights = np.array([edit.weight * edit.size for edit in edits])
    order = [edits[i] for i in rng.choice(len(edits), size=len(edits), replace=False, p=weights / weights.sum())]
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
        if len(chosen) == MAX_EDITS:
            break
    return None


def _clash(edit: Edit, other: Edit) -> bool:
    """Whether two edits overlap or could undo each other: what is denied must not be changed as well."""
    kinds = {edit.kind, other.kind}
    overlap = any(a[0] <= b[1] and b[0] <= a[1] for a in edit.parts for b in other.parts)
    undone = kinds <= _ONCE or ("relation" in kinds and edit.scope == other.scope)
    return overlap or undone or "denial" in kinds
