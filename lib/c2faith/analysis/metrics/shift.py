"""Early bias: does moving a judge's picks help? The shift is fitted on half the chains and tested on the rest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from c2faith.analysis.metrics.frames import checked, per_judge
from c2faith.analysis.resampling import DRAWS, Resamples, estimate, ratio

FARTHEST = 5


def mean_shift(error: np.ndarray) -> int:
    """The mean signed error, rounded: what the paper's advice to correct for the early bias comes to."""
    return int(np.rint(error.mean())) if len(error) else 0


def best_shift(error: np.ndarray) -> int:
    """The shift of at most five steps that makes the mean |error − shift| least; the smallest of equals."""
    shifts = sorted(range(-FARTHEST, FARTHEST + 1), key=lambda shift: (abs(shift), shift))
    return min(shifts, key=lambda shift: np.abs(error - shift).sum()) if len(error) else 0


METHODS: dict[str, Callable[[np.ndarray], int]] = {"mean error": mean_shift, "least MAE": best_shift}


def early_bias_correction(
    frame: pd.DataFrame, *, draws: int = DRAWS, rng: np.random.Generator | int = 0
) -> pd.DataFrame:
    """Shift detected indices against the bias of the other half of the chains, one row per judge and method.

    Chains are split in two at random, the same way for every judge; each half is corrected with the shift that
    the other half suggests (`ĵ − shift`, kept inside the chain).

    Returns
    -------
    DataFrame
        `method`, `shift_a`, `shift_b` (fitted on each half, in steps), `n` detected chains, and with `_low` and
        `_high` (given the shifts): `exact_before`, `exact_after`, `mae_before`, `mae_after`, `signed_before`,
        `signed_after` over detected chains, and `mae_change`, `exact_change` = after − before.

    References
    ----------
    C2-Faith, sections 5.4.3 and 6, advice 4.
    """
    checked(frame, "localization")
    frame = frame[(frame["kind"] != "natural") & (frame["target"] >= 0)]
    resamples = Resamples.draw(frame["chain_id"], draws, rng)
    first = set(np.random.default_rng(rng).permutation(resamples.chains)[: len(resamples.chains) // 2])
    rows = []
    for judge, mine in per_judge(frame):
        found = mine[mine["value"] >= 0]
        index, target, n_steps = (found[name].to_numpy(float) for name in ("value", "target", "n_steps"))
        half = found["chain_id"].isin(first).to_numpy()
        for method, fit in METHODS.items():
            shifts = fit((index - target)[half]), fit((index - target)[~half])
            moved = np.clip(index - np.where(half, shifts[1], shifts[0]), 0, n_steps - 1)
            head = {"judge_id": judge, "method": method, "shift_a": shifts[0], "shift_b": shifts[1]}
            rows.append(head | _compared(found, index - target, moved - target, resamples))
    return pd.DataFrame(rows)


def _compared(found: pd.DataFrame, before: np.ndarray, after: np.ndarray, resamples: Resamples) -> dict[str, float]:
    measures = {"exact": lambda e: e == 0, "mae": np.abs, "signed": lambda e: e}
    columns = {"n": np.ones(len(found))}
    for name, measure in measures.items():
        columns |= {f"{name}_before": measure(before), f"{name}_after": measure(after)}
    sums = resamples.totals(found["chain_id"], columns)
    means = {name: ratio(total, sums["n"]) for name, total in sums.items() if name != "n"}
    means["mae_change"] = means["mae_after"] - means["mae_before"]
    means["exact_change"] = means["exact_after"] - means["exact_before"]
    made = {"n": len(found)}
    for name, values in means.items():
        made |= estimate(values, len(found)).columns(name)
    return made
