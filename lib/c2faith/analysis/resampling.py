"""Verdict frames on bootstrap resamples of their chains, and the statistics computed on all of them at once.

A resample draws as many chains as there are, with replacement; what it says of a statistic is how often each
chain was drawn. Those counts are one matrix whose column 0 is all ones, the sample itself, so that a
statistic written once over columns gives its value (column 0) and its bootstrap draws (the others) together.
All records of a chain (its clean twin, its deletion levels, every judge's reply) share a row and move together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from c2faith.records import InputError

DRAWS = 10_000
LEVEL = 0.95
ROUNDING = 1e-12
PENDING = ("api_error", "pending")
COMMON = ("judge_id", "item_id", "chain_id", "kind", "n_steps", "value", "status")

Rng = np.random.Generator | int


def checked(frame: pd.DataFrame, task: str, *columns: str) -> pd.DataFrame:
    """`frame` itself, once it has the task's columns, each item once a judge, and nothing pending.

    Raises
    ------
    InputError
        An item whose call failed (`api_error`) or is still to be asked is no verdict: numbers computed without
        it would change when it arrives.
    """
    missing = [column for column in (*COMMON, *columns) if column not in frame.columns]
    if missing:
        raise InputError(f"the {task} frame lacks the column {missing[0]!r}; make it with judging.verdict_frame")
    pending = frame.loc[frame["status"].isin(PENDING), "judge_id"].value_counts()
    if len(pending):
        counts = ", ".join(f"{count} of {judge}" for judge, count in sorted(pending.items()))
        raise InputError(
            f"{task}: items still pending ({counts}); run the judging again to finish "
            "them, or leave the judge out: JUDGES=the,others"
        )
    twice = frame.duplicated(["judge_id", "item_id"])
    if twice.any():
        row = frame[twice].iloc[0]
        raise InputError(f"{task}: item {row['item_id']} stands twice for judge {row['judge_id']}; keep one")
    return frame


def per_judge(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """(judge_id, its rows), in the order in which judges appear."""
    return [(str(judge), rows) for judge, rows in frame.groupby("judge_id", sort=False, observed=True)]


class Estimate(NamedTuple):
    """A number with its percentile interval, the `n` records that bear it, and the planned ones without an answer.

    NaN where undefined; the interval is also NaN where fewer than two records bear the value.
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


class Resampled(NamedTuple):
    """A statistic of the sample (column 0) and of every draw, and how many records bear it."""

    columns: np.ndarray
    n: int


def estimates(found: Mapping[str, tuple[np.ndarray, int]]) -> dict[str, float]:
    """`name`, `name_low` and `name_high` of each statistic, for one row of a frame."""
    made = {}
    for name, (columns, n) in found.items():
        made |= estimate(columns, n).columns(name)
    return made


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
    def draw(cls, chain_ids: Sequence, draws: int = DRAWS, rng: Rng = 0) -> Resamples:
        """Resample the distinct chains among `chain_ids`, in their sorted order; a seed gives them again."""
        chains = pd.Index(np.sort(pd.unique(np.asarray(chain_ids, dtype=object))))
        counts = _seeded_counts if isinstance(rng, int) else _counts
        return cls(chains, counts(len(chains), draws, rng))

    def totals(self, chain_ids: Sequence, columns: Mapping[Any, np.ndarray]) -> dict[Any, np.ndarray]:
        """Sum of every column of record values over the sample and over each draw: arrays (1 + draws,)."""
        rows = self.chains.get_indexer(np.asarray(chain_ids, dtype=object))
        sums = np.array([np.bincount(rows, np.asarray(x, dtype=float), len(self.chains)) for x in columns.values()])
        return dict(zip(columns, sums @ self.counts, strict=True))

    def masses(self, chain_ids: Sequence, cells: np.ndarray, n_cells: int) -> np.ndarray:
        """How many records fall into each of `n_cells` cells: array (n_cells, 1 + draws)."""
        rows = self.chains.get_indexer(np.asarray(chain_ids, dtype=object))
        shape = (n_cells, len(self.chains))
        return csr_array((np.ones(len(rows)), (np.asarray(cells), rows)), shape) @ self.counts


def _counts(n: int, draws: int, rng: Rng) -> np.ndarray:
    picks = np.random.default_rng(rng).integers(max(n, 1), size=(draws, n))
    cells = picks * draws + np.arange(draws)[:, None]
    counts = np.ones((n, 1 + draws))
    counts[:, 1:] = np.bincount(cells.ravel(), minlength=n * draws).reshape(n, draws)
    counts.flags.writeable = False
    return counts


# Every table and figure of a run asks for the same few resamples; four of 450 chains and 10,000 draws are 144 MB.
_seeded_counts = lru_cache(maxsize=4)(_counts)


def means(
    resamples: Resamples, chain_ids: Sequence, amounts: Mapping[Any, np.ndarray | tuple[np.ndarray, np.ndarray]]
) -> dict[Any, Resampled]:
    """Mean of each amount over the sample and over each draw, as a ratio of sums.

    Parameters
    ----------
    chain_ids : sequence of shape (n,)
        The chain of every record.
    amounts : mapping
        A number or truth value for each record, or a pair of them and of a mask: the records that the mean is
        over (all by default), outside of which the amounts may be anything.

    Returns
    -------
    dict
        Under the same names; NaN where the mean is over nothing.

    >>> chains = ["a", "b"]
    >>> rates = means(Resamples.draw(chains, 9), chains, {"right": [1, 0], "of a": ([1, 0], [True, False])})
    >>> [(float(rate.columns[0]), rate.n) for rate in rates.values()]
    [(0.5, 2), (1.0, 1)]
    """
    everything, sums, over = np.ones(len(chain_ids), dtype=bool), {}, {}
    for name, amount in amounts.items():
        values, among = amount if isinstance(amount, tuple) else (amount, everything)
        among = np.asarray(among, dtype=bool)
        over[name] = among.tobytes(), int(among.sum())
        sums["sum", name] = np.where(among, np.asarray(values, dtype=float), 0)
        sums["n", among.tobytes()] = among
    totals = resamples.totals(chain_ids, sums) if sums else {}
    return {name: Resampled(ratio(totals["sum", name], totals["n", mask]), n) for name, (mask, n) in over.items()}


def by_judge(
    frame: pd.DataFrame,
    row: Callable[[pd.DataFrame, Resamples], Mapping[str, Any]],
    *,
    draws: int = DRAWS,
    rng: Rng = 0,
) -> pd.DataFrame:
    """A table of one row a judge: what `row` makes of its verdicts, on the same resamples for all judges."""
    resamples = Resamples.draw(frame["chain_id"], draws, rng)
    return pd.DataFrame([{"judge_id": judge, **row(mine, resamples)} for judge, mine in per_judge(frame)])


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Elementwise quotient; NaN where the denominator is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator == 0, np.nan, np.divide(numerator, denominator))
