"""Exp 1: does the judge flag a step that does not follow, and only such a step?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from c2faith.analysis.metrics.frames import checked, per_judge
from c2faith.analysis.resampling import DRAWS, Resamples, auroc, estimate, matthews, ratio
from c2faith.analysis.stats import wilson


def detection(frame: pd.DataFrame, *, draws: int = DRAWS, rng: np.random.Generator | int = 0) -> pd.DataFrame:
    """Detection rate, false alarms and what follows from both, one row a judge.

    Parameters
    ----------
    frame : DataFrame
        Verdict frame of the task: `truth` 0 for a perturbed step, 1 for its clean twin; `value` 0 where the
        judge says "does not follow", 1 "follows", NaN for no answer; `confidence` (optional) = P(value 0).

    Returns
    -------
    DataFrame
        `n`, `unanswered` (perturbed steps), `n_clean`, `unanswered_clean`, and with `_low` and `_high`:

        - `detection` in [0, 1]: share of perturbed steps flagged; `sd` is its population standard deviation;
        - `detection_answered`: the same over answered items; `valid_rate`: share of all items answered;
        - `false_alarm`: share of clean twins flagged; `clean_accuracy`: share accepted (a non-answer is neither);
        - `balanced_accuracy` (0.5 = chance), `youden_j` (0 = chance) and `mcc` of detection and clean accuracy,
          non-answers counting as wrong on both sides;
        - `auroc` of the confidences (0.5 = chance, ties one half).

    Raises
    ------
    InputError
        While items are pending, or on a frame of another task.

    References
    ----------
    C2-Faith, sections 4.2 and 5.1.
    """
    checked(frame, "detection")
    resamples = Resamples.draw(frame["chain_id"], draws, rng)
    return pd.DataFrame([{"judge_id": judge} | _row(rows, resamples) for judge, rows in per_judge(frame)])


def _row(rows: pd.DataFrame, resamples: Resamples) -> dict[str, float]:
    value, bad = rows["value"].to_numpy(), rows["truth"].to_numpy() == 0
    flagged, passed, answered = value == 0, value == 1, ~np.isnan(value)
    sums = resamples.totals(
        rows["chain_id"],
        {
            "bad": bad,
            "bad_answered": bad & answered,
            "caught": bad & flagged,
            "clean": ~bad,
            "alarmed": ~bad & flagged,
            "accepted": ~bad & passed,
            "answered": answered,
            "all": np.ones(len(rows)),
        },
    )
    n, n_clean = int(bad.sum()), int((~bad).sum())
    rate, accepted = ratio(sums["caught"], sums["bad"]), ratio(sums["accepted"], sums["clean"])
    wrong = sums["bad"] - sums["caught"], sums["clean"] - sums["accepted"]
    columns = {
        "detection": (rate, n),
        "detection_answered": (ratio(sums["caught"], sums["bad_answered"]), int((bad & answered).sum())),
        "valid_rate": (ratio(sums["answered"], sums["all"]), len(rows)),
        "false_alarm": (ratio(sums["alarmed"], sums["clean"]), n_clean),
        "clean_accuracy": (accepted, n_clean),
        "balanced_accuracy": ((rate + accepted) / 2, min(n, n_clean)),
        "youden_j": (rate + accepted - 1, min(n, n_clean)),
        "mcc": (matthews(sums["caught"], wrong[0], wrong[1], sums["accepted"]), len(rows)),
        "auroc": _auroc(rows, bad, resamples),
    }
    low, high = wilson(int((bad & flagged).sum()), n)
    made = {
        "n": n,
        "unanswered": int((bad & ~answered).sum()),
        "n_clean": n_clean,
        "unanswered_clean": int((~bad & ~answered).sum()),
        "sd": float(np.sqrt(rate[0] * (1 - rate[0]))),
        "wilson_low": low,
        "wilson_high": high,
    }
    for name, (values, bearing) in columns.items():
        made |= estimate(values, bearing).columns(name)
    return made


def _auroc(rows: pd.DataFrame, bad: np.ndarray, resamples: Resamples) -> tuple[np.ndarray, int]:
    """AUROC over the items that carry a confidence, and how many those are."""
    confidence = rows["confidence"].to_numpy(float) if "confidence" in rows else np.full(len(rows), np.nan)
    known = ~np.isnan(confidence)
    if not known.any():
        return np.full(resamples.counts.shape[1], np.nan), 0
    levels, codes = np.unique(confidence[known], return_inverse=True)
    chains, positive = rows["chain_id"].to_numpy()[known], bad[known]
    positives = resamples.masses(chains[positive], codes[positive], len(levels))
    negatives = resamples.masses(chains[~positive], codes[~positive], len(levels))
    return auroc(positives, negatives), int(known.sum())


def outcomes(frame: pd.DataFrame) -> pd.DataFrame:
    """Who caught which perturbed step: items × judges, True where caught, a non-answer counting as missed.

    Items that not every judge was asked are left out, so that judges are compared on the same ones.
    """
    bad = frame[frame["truth"] == 0]
    caught = bad.assign(caught=(bad["value"] == 0).astype(float))
    wide = caught.pivot(index="item_id", columns="judge_id", values="caught")
    return wide[list(pd.unique(bad["judge_id"]))].dropna().astype(bool)


def failure_patterns(frame: pd.DataFrame, **sampled: object) -> pd.DataFrame:
    """How many items each set of judges misses (the paper's Fig. 8), the most frequent set first.

    Returns
    -------
    DataFrame
        `missed_by` (judge ids joined by " + ", empty where all catch it), `n_missing` judges, `count`, `share`.
    """
    caught = outcomes(frame)
    judges = list(caught.columns)
    missed = [tuple(j for j, ok in zip(judges, row, strict=True) if not ok) for row in caught.to_numpy()]
    counts = pd.Series(missed, dtype=object).value_counts()
    order = sorted(counts.items(), key=lambda pair: (-pair[1], len(pair[0]), pair[0]))
    return pd.DataFrame(
        [
            {"missed_by": " + ".join(who), "n_missing": len(who), "count": count, "share": count / len(missed)}
            for who, count in order
        ],
        columns=["missed_by", "n_missing", "count", "share"],
    )
