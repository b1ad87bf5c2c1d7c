"""Exp 2: which step of the whole chain is the first that does not follow, and do picks come too early?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from c2faith.analysis.resampling import DRAWS, Resamples, Rng, by_judge, checked, estimates, means, per_judge, ratio
from c2faith.analysis.stats import harmonic_mean
from c2faith.dataset.perturb import middle_region
from c2faith.records import rng as seeded

FARTHEST = 5


def localization(frame: pd.DataFrame, *, natural: bool = False, draws: int = DRAWS, rng: Rng = 0) -> pd.DataFrame:
    """Exact matches, errors in steps and their direction, one row a judge.

    Columns: `n`, `unanswered` (broken chains), `n_detected`, `n_clean`, `unanswered_clean`, and with
    `_low`/`_high`:

    - `exact`, `detection` (an index was named): shares of all broken chains; `exact_answered`;
      `valid_rate` over all chains; `out_of_range` share of all chains;
    - `mae_all`: mean |ĵ − j| in steps over answered broken chains, a −1 taken literally; `mae_worst` charges
      each non-answer the largest error its chain allows: the bound on what leaving it out may hide;
    - over detected chains: `mae_detected`, `within_1`, `within_2`, `signed_error` = mean ĵ − j,
      `slip_early` and `slip_late`: shares of ĵ − j = −1 and +1 (a judge that counts from 1 has late ones);
    - `signed_excess`: `signed_error` minus `signed_null`, what wrong picks would give if spread evenly over
      the other steps of their chain; `signed_p`: two-sided p of that permutation of the other steps;
    - `clean_accuracy` (share of whole chains answered −1) and `processbench_f1`, its harmonic mean with
      `exact`;
    - `exact_corrected` = (exact − chance) / (1 − chance): 0 for a judge that ignores the text and guesses
      in the middle region (`natural`: anywhere in the chain), 1 for a perfect one.

    Source: C2-Faith, sections 4.2 and 5.2; Zheng et al. (2025), ProcessBench, for the F1.

    Parameters
    ----------
    frame : DataFrame
        Verdict frame of the task: `target` is the broken step's index, −1 for a chain without one; `value` the
        judge's index, −1 for "every step follows", NaN for no answer.
    natural : bool
        Take the chains with a natural error and the correct ones beside them, instead of the injected errors
        and their clean twins.
    """
    checked(frame, "localization", "target")
    frame = frame[(frame["kind"] == "natural") == natural]
    return by_judge(frame, partial(_row, natural=natural, rng=rng), draws=draws, rng=rng)


def _row(rows: pd.DataFrame, resamples: Resamples, *, natural: bool, rng: Rng) -> dict[str, float]:
    value, target, n_steps = (rows[name].to_numpy(float) for name in ("value", "target", "n_steps"))
    broken, answered = target >= 0, ~np.isnan(value)
    detected = broken & (value >= 0)
    error, wrong = value - target, detected & (value != target)
    if isinstance(rng, int):  # a generator for each judge, so that another judge beside it does not change its p
        rng = seeded(rng, "even misses", rows["judge_id"].iloc[0])
    draws = resamples.counts.shape[1] - 1
    expected = np.zeros(len(rows))
    expected[wrong], p = _even_misses(n_steps[wrong], target[wrong], error[wrong].sum(), draws, rng)
    worst = np.where(answered, np.abs(error), np.maximum(target + 1, n_steps - 1 - target))
    choices = n_steps if natural else np.array([max(len(middle_region(int(n))), 1) for n in n_steps])
    found = means(
        resamples,
        rows["chain_id"],
        {
            "exact": (error == 0, broken),
            "detection": (detected, broken),
            "exact_answered": (error == 0, broken & answered),
            "valid_rate": answered,
            "out_of_range": rows["status"].to_numpy() == "schema_error",
            "mae_all": (np.abs(error), broken & answered),
            "mae_worst": (worst, broken),
            "mae_detected": (np.abs(error), detected),
            "within_1": (np.abs(error) <= 1, detected),
            "within_2": (np.abs(error) <= 2, detected),
            "signed_error": (error, detected),
            "signed_excess": (error - expected, detected),
            "slip_early": (error == -1, detected),
            "slip_late": (error == 1, detected),
            "clean_accuracy": (value == -1, ~broken),
            "expected": (expected, detected),
            "chance": (1 / choices, broken),
        },
    )
    (null, n_detected), chance = found.pop("expected"), found.pop("chance").columns
    (exact, n), (accepted, n_clean) = found["exact"], found["clean_accuracy"]
    found |= {
        "processbench_f1": (harmonic_mean(exact, accepted), min(n, n_clean)),
        "exact_corrected": (ratio(exact - chance, 1 - chance), n),
    }
    return {
        "n": n,
        "unanswered": int((broken & ~answered).sum()),
        "n_detected": n_detected,
        "n_clean": n_clean,
        "unanswered_clean": int((~broken & ~answered).sum()),
        "signed_null": float(null[0]),
        "signed_p": p,
        **estimates(found),
    }


def _even_misses(
    n_steps: np.ndarray, target: np.ndarray, observed: float, draws: int, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Expected signed error of each wrong pick among the other steps, and the p of their observed sum.

    A target late in its chain leaves more room before it than after it, so wrong picks look early whatever the
    judge does. Permuting the steps other than the target within each chain is the fair null: a wrong pick then
    falls on each of them alike, with mean offset (N(N−1)/2 − Nj) / (N−1).
    """
    mean = (n_steps * (n_steps - 1) / 2 - n_steps * target) / (n_steps - 1)
    if not len(mean):
        return mean, np.nan
    picks = rng.integers((n_steps - 1).astype(int), size=(draws, len(mean)))
    offsets = picks + (picks >= target) - target
    away = np.abs(offsets.sum(axis=1) - mean.sum()) >= abs(observed - mean.sum()) - 1e-9
    return mean, float((1 + away.sum()) / (1 + draws))


def mean_shift(error: np.ndarray) -> int:
    """The mean signed error, rounded: what the paper's advice to correct for the early bias comes to."""
    return int(np.rint(error.mean())) if len(error) else 0


def best_shift(error: np.ndarray) -> int:
    """The shift of at most five steps that makes the mean |error − shift| least; the smallest of equals."""
    shifts = sorted(range(-FARTHEST, FARTHEST + 1), key=lambda shift: (abs(shift), shift))
    return min(shifts, key=lambda shift: np.abs(error - shift).sum()) if len(error) else 0


METHODS: dict[str, Callable[[np.ndarray], int]] = {"mean error": mean_shift, "least MAE": best_shift}


def early_bias_correction(frame: pd.DataFrame, *, draws: int = DRAWS, rng: Rng = 0) -> pd.DataFrame:
    """Shift detected indices against the bias of the other half of the chains, one row per judge and method.

    Chains are split in two at random, the same way for every judge; each half is corrected with the shift that
    the other half suggests (`ĵ − shift`, kept inside the chain).

    Columns: `method`, `shift_a`, `shift_b` (fitted on each half, in steps), `n` detected chains, and with `_low`
    and `_high` (given the shifts): `exact_before`, `exact_after`, `mae_before`, `mae_after`, `signed_before`,
    `signed_after` over detected chains, and `mae_change`, `exact_change` = after − before.

    Source: C2-Faith, sections 5.4.3 and 6, advice 4.
    """
    checked(frame, "localization", "target")
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
            amounts = {}
            for name, measure in {"exact": lambda e: e == 0, "mae": np.abs, "signed": lambda e: e}.items():
                amounts |= {f"{name}_before": measure(index - target), f"{name}_after": measure(moved - target)}
            compared = means(resamples, found["chain_id"], amounts)
            for name in ("mae", "exact"):
                change = compared[f"{name}_after"].columns - compared[f"{name}_before"].columns
                compared[f"{name}_change"] = change, len(found)
            head = {"judge_id": judge, "method": method, "shift_a": shifts[0], "shift_b": shifts[1]}
            rows.append(head | {"n": len(found), **estimates(compared)})
    return pd.DataFrame(rows)
