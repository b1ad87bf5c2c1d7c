"""Do a judge's confidences mean what they say? For tasks with a yes or no behind the verdict."""

from __future__ import annotations

import numpy as np
import pandas as pd

from c2faith.analysis.metrics.frames import checked, per_judge
from c2faith.analysis.resampling import DRAWS, Resamples, estimate, ratio
from c2faith.records import InputError

BINS = 10


def calibration(
    frame: pd.DataFrame,
    task: str = "detection",
    *,
    bins: int = BINS,
    draws: int = DRAWS,
    rng: np.random.Generator | int = 0,
) -> pd.DataFrame:
    """Expected calibration error and Brier score of P(something is wrong), one row a judge.

    Parameters
    ----------
    frame : DataFrame
        Verdict frame of detection (`confidence` = P(does not follow)) or localization (P(some step is broken));
        perturbed items and clean twins count, natural ones do not. The twins make half of the items wrong, so
        the confidences are judged against that base rate.
    bins : int
        Equal-width bins over [0, 1].

    Returns
    -------
    DataFrame
        `n` (items with a confidence), and with `_low`/`_high`: `ece` = Σ (n_b / n) |mean confidence − share wrong|
        in [0, 1], 0 being calibrated; `brier` = mean squared difference; `confidence` and `base_rate`, the means.
        NaN for a judge that gives no confidence.

    References
    ----------
    Guo et al. (2017), On calibration of modern neural networks, eq. 3; Brier (1950).
    """
    resamples = Resamples.draw(frame["chain_id"], draws, rng)
    made = []
    for judge, rows in per_judge(_scored(frame, task)):
        confidence, wrong = rows["confidence"].to_numpy(float), rows["wrong"].to_numpy(float)
        chains, cells, n = rows["chain_id"], _bin(confidence, bins), len(rows)
        gaps = [
            np.abs(total)
            for total in resamples.totals(
                chains, {str(b): np.where(cells == b, confidence - wrong, 0) for b in range(bins)}
            ).values()
        ]
        sums = resamples.totals(
            chains,
            {"n": np.ones(n), "square": (confidence - wrong) ** 2, "confidence": confidence, "wrong": wrong},
        )
        columns = {
            "ece": np.sum(gaps, axis=0),
            "brier": sums["square"],
            "confidence": sums["confidence"],
            "base_rate": sums["wrong"],
        }
        made.append({"judge_id": judge, "n": n})
        for name, total in columns.items():
            made[-1] |= estimate(ratio(total, sums["n"]), n).columns(name)
    return pd.DataFrame(made)


def reliability(
    frame: pd.DataFrame,
    task: str = "detection",
    *,
    bins: int = BINS,
    draws: int = DRAWS,
    rng: np.random.Generator | int = 0,
) -> pd.DataFrame:
    """The reliability curve: one row per judge and bin that has items.

    Returns
    -------
    DataFrame
        `judge_id`, `bin_low`, `bin_high`, `n`, `confidence` (mean), `wrong` (share with `_low` and `_high`).
    """
    resamples = Resamples.draw(frame["chain_id"], draws, rng)
    made = []
    for judge, rows in per_judge(_scored(frame, task)):
        for cell, inside in rows.groupby(_bin(rows["confidence"].to_numpy(float), bins)):
            sums = resamples.totals(inside["chain_id"], {"wrong": inside["wrong"], "n": np.ones(len(inside))})
            share = estimate(ratio(sums["wrong"], sums["n"]), len(inside))
            made.append(
                {
                    "judge_id": judge,
                    "bin_low": cell / bins,
                    "bin_high": (cell + 1) / bins,
                    "n": len(inside),
                    "confidence": float(inside["confidence"].mean()),
                }
                | share.columns("wrong")
            )
    return pd.DataFrame(made)


def _scored(frame: pd.DataFrame, task: str) -> pd.DataFrame:
    """Injected and clean items with a confidence, and whether something is wrong with them."""
    if task not in ("detection", "localization"):
        raise InputError(f"calibration of task {task!r}: choose from detection, localization")
    checked(frame, task)
    wrong = frame["truth"] == 0 if task == "detection" else frame["target"] >= 0
    known = frame["confidence"].notna() & (frame["kind"] != "natural")
    return frame.assign(wrong=wrong)[known]


def _bin(confidence: np.ndarray, bins: int) -> np.ndarray:
    return np.minimum((confidence * bins).astype(int), bins - 1)
