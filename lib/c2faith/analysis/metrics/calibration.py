"""Do a judge's confidences mean what they say? For tasks with a yes or no behind the verdict."""

from __future__ import annotations

import numpy as np
import pandas as pd

from c2faith.analysis.resampling import DRAWS, Resamples, Rng, checked, estimates, means, per_judge
from c2faith.records import InputError

BINS = 10


def calibration(
    frame: pd.DataFrame, task: str = "detection", *, bins: int = BINS, draws: int = DRAWS, rng: Rng = 0
) -> pd.DataFrame:
    """Expected calibration error and Brier score of P(something is wrong), one row a judge.

    Columns: `n` (items with a confidence), and with `_low`/`_high`: `ece` = Σ (n_b / n) |mean confidence − share
    wrong| in [0, 1], 0 being calibrated; `brier` = mean squared difference; `confidence` and `base_rate`, the
    means. A judge that gives no confidence has no row.

    Source: Guo et al. (2017), On calibration of modern neural networks, eq. 3; Brier (1950).

    Parameters
    ----------
    frame : DataFrame
        Verdict frame of detection (`confidence` = P(does not follow)) or localization (P(some step is broken));
        perturbed items and clean twins count, natural ones do not. The twins make half of the items wrong, so
        the confidences are judged against that base rate.
    bins : int
        Equal-width bins over [0, 1].
    """
    resamples = Resamples.draw(frame["chain_id"], draws, rng)
    made = []
    for judge, rows in per_judge(_scored(frame, task, bins)):
        confidence, wrong, n = rows["confidence"].to_numpy(float), rows["wrong"].to_numpy(float), len(rows)
        gaps = {b: np.where(rows["bin"] == b, confidence - wrong, 0) for b in range(bins)}
        other = {"brier": (confidence - wrong) ** 2, "confidence": confidence, "base_rate": wrong}
        found = means(resamples, rows["chain_id"], gaps | other)
        ece = np.sum([np.abs(found.pop(b).columns) for b in range(bins)], axis=0)
        made.append({"judge_id": judge, "n": n, **estimates({"ece": (ece, n)} | found)})
    return pd.DataFrame(made)


def reliability(
    frame: pd.DataFrame, task: str = "detection", *, bins: int = BINS, draws: int = DRAWS, rng: Rng = 0
) -> pd.DataFrame:
    """The reliability curve: one row per judge and bin that has items.

    Columns: `judge_id`, `bin_low`, `bin_high`, `n`, `confidence` (mean), `wrong` (share with `_low` and `_high`).
    """
    resamples = Resamples.draw(frame["chain_id"], draws, rng)
    return pd.DataFrame(
        [
            {
                "judge_id": judge,
                "bin_low": cell / bins,
                "bin_high": (cell + 1) / bins,
                "n": len(inside),
                "confidence": float(inside["confidence"].mean()),
                **estimates(means(resamples, inside["chain_id"], {"wrong": inside["wrong"]})),
            }
            for judge, rows in per_judge(_scored(frame, task, bins))
            for cell, inside in rows.groupby("bin")
        ]
    )


def _scored(frame: pd.DataFrame, task: str, bins: int) -> pd.DataFrame:
    """Injected and clean items with a confidence, whether something is wrong with them, and their bin."""
    if task not in ("detection", "localization"):
        raise InputError(f"calibration of task {task!r}: choose from detection, localization")
    checked(frame, task, "truth" if task == "detection" else "target")
    wrong = frame["truth"] == 0 if task == "detection" else frame["target"] >= 0
    scored = frame.assign(wrong=wrong)[frame["confidence"].notna() & (frame["kind"] != "natural")]
    return scored.assign(bin=np.minimum((scored["confidence"] * bins).astype(int), bins - 1))
