"""Exp 1: does the judge flag a step that does not follow, and only such a step? What is the context worth to it?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from c2faith.analysis.resampling import DRAWS, Resamples, Rng, by_judge, checked, estimates, means, per_judge
from c2faith.analysis.stats import matthews, resampled_auroc, wilson


def detection(frame: pd.DataFrame, *, draws: int = DRAWS, rng: Rng = 0) -> pd.DataFrame:
    """Detection rate, false alarms and what follows from both, one row a judge.

    Columns: `n`, `unanswered` (perturbed steps), `n_clean`, `unanswered_clean`, and with `_low` and `_high`:

    - `detection` in [0, 1]: share of perturbed steps flagged; `sd` is its population standard deviation;
    - `detection_answered`: the same over answered items; `valid_rate`: share of all items answered;
    - `false_alarm`: share of clean twins flagged; `clean_accuracy`: share accepted (a non-answer is neither);
    - `balanced_accuracy` (0.5 = chance), `youden_j` (0 = chance) and `mcc` of detection and clean accuracy,
      non-answers counting as wrong on both sides;
    - `auroc` of the confidences (0.5 = chance, ties one half).

    Source: C2-Faith, sections 4.2 and 5.1.

    Parameters
    ----------
    frame : DataFrame
        Verdict frame of the task: `truth` 0 for a perturbed step, 1 for its clean twin; `value` 0 where the
        judge says "does not follow", 1 "follows", NaN for no answer; `confidence` (optional) = P(value 0).

    Raises
    ------
    InputError
        While items are pending, or on a frame of another task.
    """
    return by_judge(checked(frame, "detection", "truth"), _row, draws=draws, rng=rng)


def _row(rows: pd.DataFrame, resamples: Resamples) -> dict[str, float]:
    value, bad, chains = rows["value"].to_numpy(), rows["truth"].to_numpy() == 0, rows["chain_id"]
    flagged, passed, answered = value == 0, value == 1, ~np.isnan(value)
    rates = means(
        resamples,
        chains,
        {
            "detection": (flagged, bad),
            "detection_answered": (flagged, bad & answered),
            "valid_rate": answered,
            "false_alarm": (flagged, ~bad),
            "clean_accuracy": (passed, ~bad),
        },
    )
    (rate, n), (accepted, n_clean) = rates["detection"], rates["clean_accuracy"]
    cells = {"tp": bad & flagged, "fn": bad & ~flagged, "fp": ~bad & ~passed, "tn": ~bad & passed}
    confidence = rows["confidence"] if "confidence" in rows else np.full(len(rows), np.nan)
    both = {
        "balanced_accuracy": ((rate + accepted) / 2, min(n, n_clean)),
        "youden_j": (rate + accepted - 1, min(n, n_clean)),
        "mcc": (matthews(**resamples.totals(chains, cells)), len(rows)),
        "auroc": resampled_auroc(resamples, chains, confidence, bad),
    }
    low, high = wilson(int(cells["tp"].sum()), n)
    return {
        "n": n,
        "unanswered": int((bad & ~answered).sum()),
        "n_clean": n_clean,
        "unanswered_clean": int((~bad & ~answered).sum()),
        "sd": float(np.sqrt(rate[0] * (1 - rate[0]))),
        "wilson_low": low,
        "wilson_high": high,
        **estimates(rates | both),
    }


def context_gain(full: pd.DataFrame, ablated: pd.DataFrame, *, draws: int = DRAWS, rng: Rng = 0) -> pd.DataFrame:
    """Rates with the full context minus rates without it, paired by item, one row a judge of both frames.

    Columns: `n_paired` and `n_clean_paired` (items that both frames hold), and with `_low` and `_high` the
    differences `detection_gain`, `false_alarm_gain` and `youden_j_gain` in [−1, 1], [−1, 1] and [−2, 2]; a
    non-answer is never a flag and, as a clean twin, not accepted either. Intervals resample the chains of the
    paired items.

    Parameters
    ----------
    full, ablated : DataFrame
        Verdict frames of detection and of an ablation of it, with the same `item_id`s where both ask an item.
    """
    before, rows = dict(per_judge(checked(full, "detection", "truth"))), []
    for judge, mine in per_judge(checked(ablated, "detection", "truth")):
        if judge not in before:
            continue
        paired = before[judge][["item_id", "chain_id", "truth", "value"]].merge(
            mine[["item_id", "value"]], on="item_id", suffixes=("", "_less"), validate="one_to_one"
        )
        bad, value, less = (paired[name].to_numpy() for name in ("truth", "value", "value_less"))
        bad = bad == 0
        flags = (value == 0).astype(float) - (less == 0)
        passes = (value == 1).astype(float) - (less == 1)
        gains = means(
            Resamples.draw(paired["chain_id"], draws, rng),
            paired["chain_id"],
            {"detection_gain": (flags, bad), "false_alarm_gain": (flags, ~bad), "accepted": (passes, ~bad)},
        )
        (caught, n), (accepted, n_clean) = gains["detection_gain"], gains.pop("accepted")
        head = {"judge_id": judge, "n_paired": n, "n_clean_paired": n_clean}
        rows.append(head | estimates(gains | {"youden_j_gain": (caught + accepted, min(n, n_clean))}))
    return pd.DataFrame(rows)
