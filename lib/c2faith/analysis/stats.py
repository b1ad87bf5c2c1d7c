"""Intervals, paired tests, corrections for multiplicity and agreement: what a table needs beyond counting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats as scipy_stats
from scipy.special import ndtri

from c2faith.analysis.resampling import DRAWS, LEVEL, Estimate, Resamples, estimate, rank_correlation, ratio

__all__ = [
    "Estimate",
    "McNemar",
    "agreement",
    "bonferroni",
    "bootstrap_ci",
    "holm",
    "mcnemar",
    "spearman",
    "spearman_p",
    "stars",
    "wilson",
]


def bootstrap_ci(
    values: Sequence,
    statistic: Callable[[np.ndarray], float] = np.mean,
    *,
    clusters: Sequence | None = None,
    draws: int = DRAWS,
    level: float = LEVEL,
    rng: np.random.Generator | int = 0,
) -> Estimate:
    """Percentile bootstrap interval of a statistic, resampling clusters (chains) with replacement.

    Parameters
    ----------
    values : array of shape (n,) or (n, k)
        One record a row. Records with a NaN are unanswered: left out, and counted.
    statistic : callable
        Takes the resampled records, returns a number. The mean is computed on all draws at once; any other
        function is called once a draw.
    clusters : array of shape (n,), optional
        Which records move together; by default every record is alone.
    rng : Generator or int
        The generator, or a seed.

    Returns
    -------
    Estimate
        NaN throughout if no record is answered; the interval is NaN for a single record.

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, ch. 13; C2-Faith, Appendix A.

    Examples
    --------
    >>> bootstrap_ci([1, 1, 1, 0], draws=100).value
    0.75
    """
    values = np.asarray(values, dtype=float)
    clusters = np.arange(len(values)) if clusters is None else np.asarray(clusters)
    answered = ~np.isnan(values).any(axis=tuple(range(1, values.ndim)))
    unanswered = int((~answered).sum())
    values, clusters = values[answered], clusters[answered]
    resamples = Resamples.draw(clusters, draws, rng)
    if statistic is np.mean and values.ndim == 1:
        sums = resamples.totals(clusters, {"sum": values, "n": np.ones(len(values))})
        columns = ratio(sums["sum"], sums["n"])
    elif len(values):
        rows = resamples.chains.get_indexer(clusters)
        repeats = resamples.counts.astype(int)[rows]
        columns = np.array([statistic(np.repeat(values, times, axis=0)) for times in repeats.T])
    else:
        columns = np.full(1 + draws, np.nan)
    return estimate(columns, len(values), unanswered, level)


def wilson(successes: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's score interval of a proportion: a check on the bootstrap that also holds at 0 and 1.

    References
    ----------
    Wilson (1927), JASA 22, 209-212.

    Examples
    --------
    >>> [round(bound, 3) for bound in wilson(10, 10)]
    [0.722, 1.0]
    """
    if n == 0:
        return np.nan, np.nan
    z = ndtri((1 + level) / 2)
    centre = (successes + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * np.sqrt(successes * (n - successes) / n + z**2 / 4)
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


@dataclass(frozen=True, slots=True)
class McNemar:
    """McNemar's test of two judges on the same items.

    Attributes
    ----------
    b, c : int
        Items that only the first, only the second judge gets right.
    chi2, p : float
        With continuity correction (that is the paper's p); `p` is 1 and `chi2` 0 where b + c = 0.
    p_exact : float
        Two-sided binomial.
    n : int
        Items compared.
    """

    b: int
    c: int
    chi2: float
    p: float
    p_exact: float
    n: int


def mcnemar(a: Sequence[bool], b: Sequence[bool]) -> McNemar:
    """Compare two judges' outcomes (True = right) on the same items, in the same order.

    References
    ----------
    McNemar (1947), Psychometrika 12, 153-157; Edwards (1948) for the correction.

    Examples
    --------
    >>> round(mcnemar([1] * 27 + [0] * 15, [0] * 27 + [1] * 15).p, 3)  # the paper's DeepSeek vs. o4-mini
    0.09
    """
    a, b = np.asarray(a, dtype=bool), np.asarray(b, dtype=bool)
    if a.shape != b.shape:
        raise ValueError(f"McNemar compares the same items: {len(a)} outcomes against {len(b)}")
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    discordant = only_a + only_b
    if not len(a):
        return McNemar(0, 0, np.nan, np.nan, np.nan, 0)
    chi2 = max(abs(only_a - only_b) - 1, 0) ** 2 / discordant if discordant else 0.0
    p = float(scipy_stats.chi2.sf(chi2, 1))
    exact = float(scipy_stats.binomtest(only_a, discordant).pvalue) if discordant else 1.0
    return McNemar(only_a, only_b, chi2, p, exact, len(a))


def bonferroni(p: Sequence[float]) -> np.ndarray:
    """Adjusted p-values; a NaN is no test: it stays NaN and is not counted.

    >>> bonferroni([0.01, 0.5, np.nan]).tolist()
    [0.02, 1.0, nan]
    """
    p = np.asarray(p, dtype=float)
    return np.minimum(p * np.isfinite(p).sum(), 1)


def holm(p: Sequence[float]) -> np.ndarray:
    """Holm's step-down adjusted p-values; a NaN is no test: it stays NaN and is not counted.

    References
    ----------
    Holm (1979), Scandinavian Journal of Statistics 6, 65-70.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p, dtype=float)
    adjusted, tested = np.full(len(p), np.nan), np.flatnonzero(np.isfinite(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1)
    return adjusted


def spearman(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's ρ with tied ranks in the middle; NaN (not 0) where either side is constant.

    >>> spearman([0, 1, 2], [4, 4, 4])
    nan
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    return float(rank_correlation(np.ones((len(x), 1)), x, y)[0])


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


def agreement(x: Sequence[float], y: Sequence[float]) -> float:
    """Cohen's κ with quadratic weights; NaN where both sides are the same constant.

    Over scores that are numbers it is 2 cov / (var x + var y + (mean x − mean y)²), Lin's concordance, which
    also serves references that fall between the scale's points.

    References
    ----------
    Fleiss and Cohen (1973), Educational and Psychological Measurement 33, 613-619; Lin (1989), Biometrics 45.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if not len(x):
        return np.nan
    spread = x.var() + y.var() + (x.mean() - y.mean()) ** 2
    return float(ratio(2 * ((x - x.mean()) * (y - y.mean())).mean(), spread))
