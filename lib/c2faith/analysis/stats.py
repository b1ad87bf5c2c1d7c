"""Intervals, paired tests, corrections for multiplicity and correlation: what a table needs beyond means.

Functions of `columns` work on the sample and every resample at once (see `resampling`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats as scipy_stats
from scipy.sparse import csr_array

from c2faith.analysis.resampling import DRAWS, LEVEL, Estimate, Resampled, Resamples, Rng, estimate, means, ratio


def bootstrap_ci(
    values: Sequence,
    statistic: Callable[[np.ndarray], float] = np.mean,
    *,
    clusters: Sequence | None = None,
    draws: int = DRAWS,
    level: float = LEVEL,
    rng: Rng = 0,
) -> Estimate:
    """Percentile bootstrap interval of a statistic, resampling clusters (chains) with replacement.

    NaN throughout if no record is answered; the interval is NaN for a single record.
    Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, ch. 13; C2-Faith, Appendix A.

    >>> bootstrap_ci([1, 1, 1, 0], draws=100).value
    0.75

    Parameters
    ----------
    values : array of shape (n,) or (n, k)
        One record a row. Records with a NaN are unanswered: left out, and counted.
    statistic : callable
        Takes the resampled records, returns a number. The mean is computed on all draws at once; any other
        function is called once a draw.
    clusters : array of shape (n,), optional
        Which records move together; by default every record is alone.
    """
    values = np.asarray(values, dtype=float)
    clusters = np.arange(len(values)) if clusters is None else np.asarray(clusters)
    answered = ~np.isnan(values).any(axis=tuple(range(1, values.ndim)))
    values, clusters = values[answered], clusters[answered]
    resamples = Resamples.draw(clusters, draws, rng)
    if statistic is np.mean and values.ndim == 1:
        columns = means(resamples, clusters, {"mean": values})["mean"].columns
    elif len(values):
        repeats = resamples.counts.astype(int)[resamples.chains.get_indexer(clusters)]
        columns = np.array([statistic(np.repeat(values, times, axis=0)) for times in repeats.T])
    else:
        columns = np.full(1 + draws, np.nan)
    return estimate(columns, len(values), int((~answered).sum()), level)


def wilson(successes: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's (1927) score interval of a proportion: a check on the bootstrap that also holds at 0 and 1.

    >>> [round(bound, 3) for bound in wilson(10, 10)]
    [0.722, 1.0]
    """
    if n == 0:
        return np.nan, np.nan
    z = scipy_stats.norm.ppf((1 + level) / 2)
    centre = (successes + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * np.sqrt(successes * (n - successes) / n + z**2 / 4)
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


class McNemar(NamedTuple):
    """McNemar's test of two judges on `n` items: `b` only the first, `c` only the second gets right.

    `chi2` and `p` are with continuity correction (that is the paper's p), 0 and 1 where b + c = 0; `p_exact` is the
    two-sided binomial.
    """

    b: int
    c: int
    chi2: float
    p: float
    p_exact: float
    n: int


def mcnemar(a: Sequence[bool], b: Sequence[bool]) -> McNemar:
    """Compare two judges' outcomes (True = right) on the same items, in the same order.

    Source: McNemar (1947), Psychometrika 12, 153-157; Edwards (1948) for the correction.

    >>> round(mcnemar([1] * 27 + [0] * 15, [0] * 27 + [1] * 15).p, 3)  # the paper's DeepSeek vs. o4-mini
    0.09
    """
    a, b = np.asarray(a, dtype=bool), np.asarray(b, dtype=bool)
    if a.shape != b.shape:
        raise ValueError(f"McNemar compares the same items: {len(a)} outcomes against {len(b)}")
    if not len(a):
        return McNemar(0, 0, np.nan, np.nan, np.nan, 0)
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    discordant = only_a + only_b
    chi2 = max(abs(only_a - only_b) - 1, 0) ** 2 / discordant if discordant else 0.0
    exact = float(scipy_stats.binomtest(only_a, discordant).pvalue) if discordant else 1.0
    return McNemar(only_a, only_b, chi2, float(scipy_stats.chi2.sf(chi2, 1)), exact, len(a))


def bonferroni(p: Sequence[float]) -> np.ndarray:
    """Adjusted p-values; a NaN is no test: it stays NaN and is not counted.

    >>> bonferroni([0.01, 0.5, np.nan]).tolist()
    [0.02, 1.0, nan]
    """
    p = np.asarray(p, dtype=float)
    return np.minimum(p * np.isfinite(p).sum(), 1)


def holm(p: Sequence[float]) -> np.ndarray:
    """Holm's (1979) step-down adjusted p-values; a NaN is no test: it stays NaN and is not counted.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    adjusted = np.array(p, dtype=float)
    tested = np.flatnonzero(np.isfinite(adjusted))
    order = tested[np.argsort(adjusted[tested], kind="stable")]
    # statsmodels' multipletests says the same, but collects garbage at every call: 2 s of a run's tables.
    adjusted[order] = np.minimum(np.maximum.accumulate(adjusted[order] * np.arange(len(order), 0, -1)), 1)
    return adjusted


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


def resampled_auroc(resamples: Resamples, chain_ids: Sequence, scores: Sequence, positive: Sequence) -> Resampled:
    """`auroc` of the records that have a score (NaN: none), in the sample and in every draw."""
    known = ~np.isnan(np.asarray(scores, dtype=float))
    levels, codes = np.unique(np.asarray(scores, dtype=float)[known], return_inverse=True)
    chains, side = np.asarray(chain_ids, dtype=object)[known], np.asarray(positive, dtype=bool)[known]
    masses = [resamples.masses(chains[mask], codes[mask], len(levels)) for mask in (side, ~side)]
    return Resampled(auroc(*masses), int(known.sum()))


def matthews(tp: np.ndarray, fn: np.ndarray, fp: np.ndarray, tn: np.ndarray) -> np.ndarray:
    """Matthews' correlation of a 2 × 2 table; NaN where a margin is empty (scikit-learn writes 0 there)."""
    margins = (tp + fn) * (fp + tn) * (tp + fp) * (fn + tn)
    return ratio(tp * tn - fp * fn, np.sqrt(margins))


def harmonic_mean(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """2ab / (a + b), which tends to 0 with either of them; NaN where either is undefined."""
    return np.where((a == 0) & (b == 0), 0.0, ratio(2 * a * b, a + b))


def spearman_p(rho: float | np.ndarray, n: int) -> float | np.ndarray:
    """Two-sided p of ρ at `n` records, from Student's t with n − 2 degrees of freedom (scipy's default)."""
    if n < 3:
        return np.full(np.shape(rho), np.nan)[()]
    with np.errstate(divide="ignore"):
        t = np.abs(rho) * np.sqrt((n - 2) / np.maximum(1 - np.square(rho), 0))
    return 2 * scipy_stats.t.sf(t, n - 2)


def stars(p: float) -> str:
    """The paper's stars (Table 3): ** below 0.01, *** below 0.001."""
    return "***" if p < 0.001 else "**" if p < 0.01 else ""
