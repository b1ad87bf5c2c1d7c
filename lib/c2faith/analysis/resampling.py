"""Bootstrap resamples of chains, and the statistics that are computed on all of them at once.

A resample draws as many chains as there are, with replacement; what it says of a statistic is how often each
chain was drawn. Those counts are one matrix whose column 0 is all ones, the sample itself, so that a
statistic written once over columns gives its value (column 0) and its bootstrap draws (the others) together.
All records of a chain (its clean twin, its deletion levels, every judge's reply) share a row and move together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

DRAWS = 10_000
LEVEL = 0.95
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its percentile interval.

    Attributes
    ----------
    value, low, high : float
        NaN where undefined; the interval is also NaN where fewer than two records bear the value.
    n : int
        Records that bear the value.
    unanswered : int
        Planned records without an answer.
    """

    value: float
    low: float
    high: float
    n: int
    unanswered: int = 0

    def columns(self, name: str) -> dict[str, float]:
        """`name`, `name_low`, `name_high`, for one row of a frame."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}


def estimate(columns: np.ndarray, n: int, unanswered: int = 0, level: float = LEVEL) -> Estimate:
    """The value in column 0 with the percentile interval of the draws in the other columns.

    Draws in which the statistic is undefined (no detected record among the drawn chains, say) are left out. What is
    below `ROUNDING` is 0: the last bits of a difference are the processor's, and would write other bytes elsewhere.
    """
    columns = np.where(np.abs(columns) < ROUNDING, 0.0, columns)
    value, draws = float(columns[0]), columns[1:]
    draws = draws[~np.isnan(draws)]
    if np.isnan(value) or n < 2 or not len(draws):
        return Estimate(value, np.nan, np.nan, n, unanswered)
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value, float(low), float(high), n, unanswered)


@dataclass(frozen=True, slots=True)
class Resamples:
    """How often each chain occurs in the sample itself (column 0: once) and in each bootstrap draw.

    Attributes
    ----------
    chains : Index of shape (n_chains,)
    counts : array of shape (n_chains, 1 + draws)
    """

    chains: pd.Index
    counts: np.ndarray

    @classmethod
    def draw(cls, chain_ids: Sequence, draws: int = DRAWS, rng: np.random.Generator | int = 0) -> Resamples:
        """Resample the distinct chains among `chain_ids`, in their sorted order; a seed gives them again."""
        chains = pd.Index(np.sort(pd.unique(np.asarray(chain_ids, dtype=object))))
        counts = _seeded_counts if isinstance(rng, int) else _counts
        return cls(chains, counts(len(chains), draws, rng))

    def totals(self, chain_ids: Sequence, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Sum of every column of record values over the sample and over each draw: arrays (1 + draws,)."""
        rows = self.chains.get_indexer(np.asarray(chain_ids, dtype=object))
        sums = np.array([np.bincount(rows, np.asarray(x, dtype=float), len(self.chains)) for x in columns.values()])
        return dict(zip(columns, sums @ self.counts, strict=True))

    def masses(self, chain_ids: Sequence, cells: np.ndarray, n_cells: int) -> np.ndarray:
        """How many records fall into each of `n_cells` cells: array (n_cells, 1 + draws)."""
        rows = self.chains.get_indexer(np.asarray(chain_ids, dtype=object))
        shape = (n_cells, len(self.chains))
        return csr_array((np.ones(len(rows)), (np.asarray(cells), rows)), shape) @ self.counts


def _counts(n: int, draws: int, rng: np.random.Generator | int) -> np.ndarray:
    picks = np.random.default_rng(rng).integers(max(n, 1), size=(draws, n))
    cells = picks * draws + np.arange(draws)[:, None]
    counts = np.ones((n, 1 + draws))
    counts[:, 1:] = np.bincount(cells.ravel(), minlength=n * draws).reshape(n, draws)
    counts.flags.writeable = False
    return counts


# Every table and figure of a run asks for the same few resamples; four of 450 chains and 10,000 draws are 144 MB.
_seeded_counts = lru_cache(maxsize=4)(_counts)


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Elementwise quotient; NaN where the denominator is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator == 0, np.nan, np.divide(numerator, denominator))


def midranks(mass: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Rank of every cell's `x`, ties in the middle, counted from the centre: shape of `mass` (cells, columns).

    The cell at the middle of a column's mass has rank 0, so a column's ranks sum to 0 under its mass.
    """
    levels, codes = np.unique(x, return_inverse=True)
    weight = csr_array((np.ones(len(x)), (codes, np.arange(len(x)))), (len(levels), len(x))) @ mass
    return (np.cumsum(weight, axis=0) - weight / 2 - mass.sum(axis=0) / 2)[codes]


def rank_correlation(mass: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Spearman's ρ in every column of `mass` (cells, columns); NaN where `x` or `y` is constant.

    >>> rank_correlation(np.ones((3, 1)), np.array([1, 2, 3]), np.array([1, 4, 9])).tolist()
    [1.0]
    """
    if not len(mass):
        return np.full(mass.shape[1], np.nan)
    rank_x, rank_y = midranks(mass, x), midranks(mass, y)
    products = [(mass * a * b).sum(axis=0) for a, b in ((rank_x, rank_y), (rank_x, rank_x), (rank_y, rank_y))]
    return ratio(products[0], np.sqrt(products[1] * products[2]))


def auroc(positive: np.ndarray, negative: np.ndarray) -> np.ndarray:
    """Chance that a positive record scores higher than a negative one, ties counting one half.

    `positive` and `negative` are masses (score levels in rising order, columns); NaN where either is empty.
    """
    below = np.cumsum(negative, axis=0) - negative / 2
    return ratio((positive * below).sum(axis=0), positive.sum(axis=0) * negative.sum(axis=0))


def matthews(tp: np.ndarray, fn: np.ndarray, fp: np.ndarray, tn: np.ndarray) -> np.ndarray:
    """Matthews' correlation of a 2 × 2 table; NaN where a margin is empty (scikit-learn writes 0 there)."""
    margins = (tp + fn) * (fp + tn) * (tp + fp) * (fn + tn)
    return ratio(tp * tn - fp * fn, np.sqrt(margins))


def harmonic_mean(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """2ab / (a + b), which tends to 0 with either of them; NaN where either is undefined."""
    return np.where((a == 0) & (b == 0), 0.0, ratio(2 * a * b, a + b))
