"""Exp 2: which step of the whole chain is the first that does not follow, if any?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from c2faith.analysis.metrics.frames import checked, per_judge
from c2faith.analysis.resampling import DRAWS, Resamples, estimate, harmonic_mean, ratio
from c2faith.dataset.perturb import middle_region
from c2faith.records import rng as seeded


def localization(
    frame: pd.DataFrame,
    *,
    natural: bool = False,
    draws: int = DRAWS,
    rng: np.random.Generator | int = 0,
) -> pd.DataFrame:
    """Exact matches, errors in steps and their direction, one row a judge.

    Parameters
    ----------
    frame : DataFrame
        Verdict frame of the task: `target` is the broken step's index, −1 for a chain without one; `value` the
        judge's index, −1 for "every step follows", NaN for no answer.
    natural : bool
        Take the chains with a natural error and the correct ones beside them, instead of the injected errors
        and their clean twins.

    Returns
    -------
    DataFrame
        `n`, `unanswered` (broken chains), `n_detected`, `n_clean`, `unanswered_clean`, and with `_low`/`_high`:

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

    References
    ----------
    C2-Faith, sections 4.2 and 5.2; Zheng et al. (2025), ProcessBench, for the F1.
    """
    checked(frame, "localization")
    frame = frame[(frame["kind"] == "natural") == natural]
    resamples = Resamples.draw(frame["chain_id"], draws, rng)
    return pd.DataFrame(
        [
            {"judge_id": judge} | _row(rows, natural, resamples, draws, _own(rng, judge))
            for judge, rows in per_judge(frame)
        ]
    )


def _own(rng: np.random.Generator | int, judge: str) -> np.random.Generator:
    """From a seed, a generator for each judge, so that another judge beside it does not change its p."""
    return seeded(rng, "even misses", judge) if isinstance(rng, int) else rng


def _row(
    rows: pd.DataFrame, natural: bool, resamples: Resamples, draws: int, rng: np.random.Generator
) -> dict[str, float]:
    value, target, n_steps = (rows[name].to_numpy(float) for name in ("value", "target", "n_steps"))
    broken, answered = target >= 0, ~np.isnan(value)
    detected = broken & answered & (value >= 0)
    error = np.where(broken & answered, value - target, 0)
    wrong = detected & (error != 0)
    null_mean, p = _even_misses(n_steps[wrong], target[wrong], error[wrong].sum(), draws, rng)
    expected = np.zeros(len(rows))
    expected[wrong] = null_mean
    worst = np.where(answered, np.abs(error), np.maximum(target + 1, n_steps - 1 - target))
    choices = n_steps if natural else np.array([max(len(middle_region(int(n))), 1) for n in n_steps])
    sums = resamples.totals(
        rows["chain_id"],
        {
            "all": np.ones(len(rows)),
            "answered": answered,
            "out_of_range": rows["status"].to_numpy() == "schema_error",
            "broken": broken,
            "broken_answered": broken & answered,
            "exact": broken & (value == target),
            "detected": detected,
            "distance": np.abs(error),
            "worst": np.where(broken, worst, 0),
            "distance_detected": np.where(detected, np.abs(error), 0),
            "within_1": detected & (np.abs(error) <= 1),
            "within_2": detected & (np.abs(error) <= 2),
            "signed": np.where(detected, error, 0),
            "expected": expected,
            "early": detected & (error == -1),
            "late": detected & (error == 1),
            "chance": np.where(broken, 1 / choices, 0),
            "clean": ~broken,
            "accepted": ~broken & (value == -1),
        },
    )
    n, n_answered, n_detected = int(broken.sum()), int((broken & answered).sum()), int(detected.sum())
    n_clean = int((~broken).sum())
    exact, accepted = ratio(sums["exact"], sums["broken"]), ratio(sums["accepted"], sums["clean"])
    signed, null = ratio(sums["signed"], sums["detected"]), ratio(sums["expected"], sums["detected"])
    columns = {
        "exact": (exact, n),
        "detection": (ratio(sums["detected"], sums["broken"]), n),
        "exact_answered": (ratio(sums["exact"], sums["broken_answered"]), n_answered),
        "valid_rate": (ratio(sums["answered"], sums["all"]), len(rows)),
        "out_of_range": (ratio(sums["out_of_range"], sums["all"]), len(rows)),
        "mae_all": (ratio(sums["distance"], sums["broken_answered"]), n_answered),
        "mae_worst": (ratio(sums["worst"], sums["broken"]), n),
        "mae_detected": (ratio(sums["distance_detected"], sums["detected"]), n_detected),
        "within_1": (ratio(sums["within_1"], sums["detected"]), n_detected),
        "within_2": (ratio(sums["within_2"], sums["detected"]), n_detected),
        "signed_error": (signed, n_detected),
        "signed_excess": (signed - null, n_detected),
        "slip_early": (ratio(sums["early"], sums["detected"]), n_detected),
        "slip_late": (ratio(sums["late"], sums["detected"]), n_detected),
        "clean_accuracy": (accepted, n_clean),
        "processbench_f1": (harmonic_mean(exact, accepted), min(n, n_clean)),
        "exact_corrected": (ratio(sums["exact"] - sums["chance"], sums["broken"] - sums["chance"]), n),
    }
    made = {
        "n": n,
        "unanswered": n - n_answered,
        "n_detected": n_detected,
        "n_clean": n_clean,
        "unanswered_clean": int((~broken & ~answered).sum()),
        "signed_null": float(null[0]),
        "signed_p": p,
    }
    for name, (values, bearing) in columns.items():
        made |= estimate(values, bearing).columns(name)
    return made


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
