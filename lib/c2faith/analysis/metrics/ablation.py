"""What the context is worth to a judge: detection with it, less detection without it, on the same items."""

from __future__ import annotations

import numpy as np
import pandas as pd

from c2faith.analysis.metrics.frames import checked, per_judge
from c2faith.analysis.resampling import DRAWS, Resamples, estimate, ratio


def context_gain(
    full: pd.DataFrame, ablated: pd.DataFrame, *, draws: int = DRAWS, rng: np.random.Generator | int = 0
) -> pd.DataFrame:
    """Rates with the full context minus rates without it, paired by item, one row a judge of both frames.

    Parameters
    ----------
    full, ablated : DataFrame
        Verdict frames of detection and of an ablation of it, with the same `item_id`s where both ask an item.

    Returns
    -------
    DataFrame
        `n_paired` and `n_clean_paired` (items that both frames hold), and with `_low` and `_high` the differences
        `detection_gain`, `false_alarm_gain` and `youden_j_gain` in [−1, 1], [−1, 1] and [−2, 2]; a non-answer is
        never a flag and, as a clean twin, not accepted either. Intervals resample the chains of the paired items.

    Raises
    ------
    InputError
        While items are pending, or on a frame of another task.
    """
    before = dict(per_judge(checked(full, "detection")))
    rows = []
    for judge, mine in per_judge(checked(ablated, "detection")):
        if judge in before:
            columns = ["item_id", "chain_id", "truth", "value"]
            paired = before[judge][columns].merge(
                mine[["item_id", "value"]], on="item_id", suffixes=("", "_less"), validate="one_to_one"
            )
            rows.append({"judge_id": judge, **_row(paired, Resamples.draw(paired["chain_id"], draws, rng))})
    return pd.DataFrame(rows)


def _row(paired: pd.DataFrame, resamples: Resamples) -> dict[str, float]:
    bad = (paired["truth"] == 0).to_numpy()
    value, less = paired["value"].to_numpy(), paired["value_less"].to_numpy()
    flags = (value == 0).astype(float) - (less == 0)
    passes = (value == 1).astype(float) - (less == 1)
    sums = resamples.totals(
        paired["chain_id"],
        {"bad": bad, "clean": ~bad, "caught": bad * flags, "alarmed": ~bad * flags, "accepted": ~bad * passes},
    )
    n, n_clean = int(bad.sum()), int((~bad).sum())
    caught = ratio(sums["caught"], sums["bad"])
    return {
        "n_paired": n,
        "n_clean_paired": n_clean,
        **estimate(caught, n).columns("detection_gain"),
        **estimate(ratio(sums["alarmed"], sums["clean"]), n_clean).columns("false_alarm_gain"),
        **estimate(caught + ratio(sums["accepted"], sums["clean"]), min(n, n_clean)).columns("youden_j_gain"),
    }
