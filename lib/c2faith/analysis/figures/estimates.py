"""Estimates in the shape that figures draw: one row a judge with value, low and high."""

from __future__ import annotations

import numpy as np
import pandas as pd

from c2faith.analysis.figures.style import Looks
from c2faith.analysis.resampling import Resamples, estimate, ratio

ENDS = ["value", "low", "high"]


def named_step(localization: pd.DataFrame) -> pd.Series:
    """Where a judge named a step: it answered, and not −1."""
    return localization["value"].notna() & (localization["value"] != -1)


def column(table: pd.DataFrame, name: str, looks: Looks) -> pd.DataFrame:
    """One estimate of a table of `c2faith.analysis.metrics`, indexed by judge in the order of `looks`."""
    chosen = table.set_index("judge_id")[[name, f"{name}_low", f"{name}_high"]]
    return chosen.set_axis(ENDS, axis=1).reindex(list(looks))


def by_judge(
    frame: pd.DataFrame,
    amounts: pd.Series,
    looks: Looks,
    resamples: Resamples,
    *,
    among: pd.Series | None = None,
) -> pd.DataFrame:
    """Each judge's mean of `amounts` over its rows, or over those rows where `among` holds.

    Parameters
    ----------
    frame : DataFrame
        Verdict frame.
    amounts : Series
        A number or truth value for each row of `frame`; not looked at where `among` does not hold.
    looks : mapping
        Names the judges, in order.
    resamples : Resamples
        Of the chains in `frame`.

    Returns
    -------
    DataFrame
        Indexed by judge: value, low, high (95%). NaN for a judge without such rows.
    """
    rows = {}
    for name in looks:
        chosen = (frame["judge_id"] == name) & (True if among is None else among)
        n = int(chosen.sum())
        columns = {"sum": amounts[chosen].to_numpy(dtype=float), "n": np.ones(n)}
        totals = resamples.totals(frame.loc[chosen, "chain_id"], columns)
        mean = estimate(ratio(totals["sum"], totals["n"]), n)
        rows[name] = [mean.value, mean.low, mean.high]
    return pd.DataFrame.from_dict(rows, orient="index", columns=ENDS)
