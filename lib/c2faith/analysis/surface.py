"""How much gives a negation away before any context is read? A blind reader of single steps as a yardstick.

A naive Bayes classifier over words, commands, signs and numbers' shapes learns from other chains which steps were
negated, and then scores this chain's original and perturbed step. What it tells apart is in the step's surface.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from math import fsum

import numpy as np
import pandas as pd

from c2faith.analysis.resampling import DRAWS, Resamples, Rng, estimates, means
from c2faith.analysis.stats import resampled_auroc
from c2faith.records import rng as seeded

FOLDS = 5
_PIECE = re.compile(r"\\[A-Za-z]+|[^\W\d_]+|\d+|[^\w\s]")


def pieces(step: str) -> set[str]:
    r"""Words, commands, signs and number lengths of a step, and which of them stand side by side.

    >>> sorted(pieces("So x = 12"))
    ['00', '=', '= 00', 'so', 'so x', 'x', 'x =']
    """
    found = ["0" * len(piece) if piece.isdigit() else piece.lower() for piece in _PIECE.findall(step)]
    return {*found, *(f"{a} {b}" for a, b in pairwise(found))}


def suspicion(items: pd.DataFrame, *, folds: int = FOLDS, seed: int = 0) -> pd.DataFrame:
    """Log-odds that a step is the perturbed one, of both steps of every item, learned on the other folds' chains.

    Columns: `item_id`, `chain_id`, `original`, `perturbed`: the scores.
    """
    fold = np.array([int(seeded(seed, "fold", chain).integers(folds)) for chain in items["chain_id"]])
    sides = [[pieces(step) for step in items[name]] for name in ("original_step", "perturbed_step")]
    scores = np.full((len(items), 2), np.nan)
    for held in range(folds):
        learn = np.flatnonzero(fold != held)
        weights = _weights(*([side[row] for row in learn] for side in sides))
        for row in np.flatnonzero(fold == held):
            # fsum: a set has no order that lasts, and equal steps must score the same to the last bit.
            scores[row] = [fsum(weights.get(piece, 0.0) for piece in side[row]) for side in sides]
    return items[["item_id", "chain_id"]].assign(original=scores[:, 0], perturbed=scores[:, 1])


def _weights(original: Iterable[set[str]], perturbed: Iterable[set[str]]) -> dict[str, float]:
    """Log of the ratio of each piece's shares among perturbed and original steps, one step added to each count."""
    counts = [Counter(piece for step in side for piece in step) for side in (original, perturbed)]
    return {
        piece: float(np.log((counts[1][piece] + 1) / (counts[0][piece] + 1))) for piece in counts[0] | counts[1]
    }


def giveaway(items: pd.DataFrame, *, draws: int = DRAWS, rng: Rng = 0, seed: int = 0) -> pd.DataFrame:
    """How well the blind reader tells negated steps, over all items and by edit type.

    Columns: `edit_type` ("all" first), `n`, and with `_low` and `_high`: `pair_accuracy`, the share of items whose
    perturbed step is the more suspicious one (ties one half), and `auroc` over all steps; 0.5 is chance.
    """
    scores = suspicion(items, seed=seed).merge(items[["item_id", "edit_type"]], on="item_id")
    resamples, made = Resamples.draw(scores["chain_id"], draws, rng), []
    for name, rows in [("all", scores), *scores.groupby("edit_type", sort=True)]:
        gap = rows["perturbed"] - rows["original"]
        found = means(resamples, rows["chain_id"], {"pair_accuracy": (gap > 0) + (gap == 0) / 2})
        steps = rows.melt("chain_id", ["perturbed", "original"], "side", "score")
        area = resampled_auroc(resamples, steps["chain_id"], steps["score"], steps["side"] == "perturbed")
        head = {"edit_type": name, "n": len(rows)}
        made.append(head | estimates(found | {"auroc": (area.columns, len(rows))}))
    return pd.DataFrame(made)
