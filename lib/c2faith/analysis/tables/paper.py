"""Tables 1 to 3 of the paper, with what the paper leaves out beside them and its printed rows under ours."""

from __future__ import annotations

from itertools import combinations
from string import ascii_lowercase

import numpy as np
import pandas as pd

from c2faith.analysis import metrics, published
from c2faith.analysis.metrics.frames import checked
from c2faith.analysis.resampling import DRAWS, LEVEL, Resamples, estimate, ratio
from c2faith.analysis.stats import bonferroni, holm, mcnemar, stars

Rng = np.random.Generator | int
OURS, PRINTED = "run", "published"
INTERVALS = f"Brackets: {LEVEL:.0%} percentile bootstrap intervals that resample chains."


def with_published(ours: pd.DataFrame, printed: pd.DataFrame, show: bool) -> pd.DataFrame:
    """Our rows, marked as this run's, and the paper's printed rows under them, marked as published."""
    ours = ours.assign(origin=OURS)
    if not show:
        return ours
    printed = printed.assign(origin=PRINTED)
    return pd.concat([ours, printed[[name for name in printed if name in ours]]], ignore_index=True)


def table1_detection(
    frame: pd.DataFrame,
    *,
    show_published: bool = True,
    alpha: float = 0.05,
    draws: int = DRAWS,
    rng: Rng = 0,
) -> pd.DataFrame:
    """Table 1: detection of replaced steps; [+] false alarms on clean twins and measures of both.

    `better_than` lists the `key`s of the judges that a judge detects significantly more than: McNemar's test
    with continuity correction, Bonferroni-corrected over all pairs, below `alpha` (see `table1_pairs`). It is
    empty for a single judge.
    """
    made = metrics.detection(frame, draws=draws, rng=rng)
    keys = dict(zip(made["judge_id"], ascii_lowercase, strict=False))
    made = made.assign(key=made["judge_id"].map(keys), better_than=_better_than(frame, keys, alpha))
    made = with_published(made, _table1_published(keys), show_published)
    made.attrs = {
        "caption": "Exp 1: binary detection of replaced steps. A non-answer counts as a miss. Better than: "
        "judges (by key) significantly below, McNemar's test with continuity correction, "
        f"Bonferroni-corrected p < {alpha:g}. sd: population standard deviation of the 0/1 outcomes. "
        f"{INTERVALS} Wilson's interval holds at 0 and 100% too.",
        "panels": {
            "Perturbed steps": [
                *("key", "n", "unanswered", "detection", "better_than", "sd"),
                *("wilson", "detection_answered", "valid_rate"),
            ],
            "With the clean twins": [
                *("n_clean", "unanswered_clean", "false_alarm", "balanced_accuracy"),
                *("youden_j", "mcc", "auroc"),
            ],
        },
    }
    return made


def _table1_published(taken: dict[str, str]) -> pd.DataFrame:
    """The printed rows with the next free keys; DeepSeek and o4-mini are marked as better than GPT-4.1."""
    printed = published.table1()
    free = [key for key in ascii_lowercase if key not in taken.values()]
    names = dict(zip(printed["judge_id"], free, strict=False))
    better = np.where(printed["significant"], names["GPT-4.1"], "")
    return printed.assign(key=printed["judge_id"].map(names), better_than=better, unanswered=np.nan)


def _better_than(frame: pd.DataFrame, keys: dict[str, str], alpha: float) -> list[str]:
    pairs = _tests(frame)
    won: dict[str, list[str]] = {judge: [] for judge in keys}
    for row in pairs[pairs["p_bonferroni"] < alpha].itertuples():
        first = row.only_a > row.only_b
        winner, loser = (row.judge_a, row.judge_b) if first else (row.judge_b, row.judge_a)
        won[winner].append(keys[loser])
    return [" ".join(sorted(losers)) for losers in won.values()]


def table1_pairs(frame: pd.DataFrame, *, draws: int = DRAWS, rng: Rng = 0) -> pd.DataFrame:
    """Every pair of judges on the perturbed steps that both were asked: difference, McNemar's tests."""
    checked(frame, "detection")
    bad = frame[frame["truth"] == 0]
    caught = bad.assign(caught=bad["value"] == 0).pivot(index="item_id", columns="judge_id", values="caught")
    chains = bad.drop_duplicates("item_id").set_index("item_id")["chain_id"].reindex(caught.index)
    resamples = Resamples.draw(bad["chain_id"], draws, rng)
    made = []
    for test in _tests(frame).to_dict("records"):
        both = caught[[test["judge_a"], test["judge_b"]]].dropna().astype(float)
        columns = {"gap": both.iloc[:, 0] - both.iloc[:, 1], "n": np.ones(len(both))}
        sums = resamples.totals(chains[both.index], columns)
        gap = estimate(ratio(sums["gap"], sums["n"]), len(both))
        made.append({**test, **gap.columns("difference")})
    names = ["judge_a", "judge_b", "n", "difference", "difference_low", "difference_high", "only_a", "only_b"]
    names += ["p", "p_exact", "p_bonferroni", "p_holm"]
    table = pd.DataFrame(made, columns=names)
    table.attrs = {
        "caption": "Exp 1, pairs of judges on the same perturbed steps: difference of detection rates, "
        "McNemar's p with continuity correction and exact; corrections (Bonferroni, Holm) of the "
        f"former over the table's pairs. {INTERVALS}",
        "keys": ["judge_a", "judge_b"],
    }
    return table


def _tests(frame: pd.DataFrame) -> pd.DataFrame:
    """McNemar's test of every pair of judges, on the items both were asked."""
    bad = frame[frame["truth"] == 0]
    caught = bad.assign(caught=bad["value"] == 0).pivot(index="item_id", columns="judge_id", values="caught")
    rows = []
    for a, b in combinations(pd.unique(frame["judge_id"]), 2):
        both = caught.reindex(columns=[a, b]).dropna().astype(bool)
        test = mcnemar(both[a], both[b])
        rows.append(
            {
                "judge_a": a,
                "judge_b": b,
                "n": test.n,
                "only_a": test.b,
                "only_b": test.c,
                "p": test.p,
                "p_exact": test.p_exact,
            }
        )
    pairs = pd.DataFrame(rows, columns=["judge_a", "judge_b", "n", "only_a", "only_b", "p", "p_exact"])
    p = pairs["p"].to_numpy(float)
    return pairs.assign(p_bonferroni=bonferroni(p), p_holm=holm(p))


def table2_localization(
    frame: pd.DataFrame, *, show_published: bool = True, draws: int = DRAWS, rng: Rng = 0
) -> pd.DataFrame:
    """Table 2: localization of replaced steps; [+] direction of errors, clean chains, corrections for chance."""
    made = metrics.localization(frame, draws=draws, rng=rng)
    if len(made):
        made["signed_p_holm"] = holm(made["signed_p"])
    made = with_published(made, published.table2(), show_published)
    made.attrs = {
        "caption": "Exp 2: localization of replaced steps. A non-answer is neither exact nor detected, and no "
        "−1: MAE all rests on answered chains with −1 taken literally, its worst case charges each "
        "non-answer the largest error its chain allows. MAE det., W@k and signed errors: detected "
        "chains only. Even misses: the signed error if wrong picks fell evenly on the other steps "
        "of their chain (the permutation null of the excess; Holm over judges). Chance: a guess in "
        "the middle region. ProcessBench F1: harmonic mean of exact match and clean accuracy. "
        f"{INTERVALS}",
        "panels": {
            "Where the broken step is": [
                *("n", "unanswered", "exact", "detection", "mae_all", "mae_detected", "within_1", "within_2"),
            ],
            "Direction of errors, over detected chains": [
                *("n_detected", "signed_error", "signed_null", "signed_excess", "signed_p", "signed_p_holm"),
                *("slip_early", "slip_late"),
            ],
            "With the clean twins, chance and non-answers": [
                *("n_clean", "unanswered_clean", "clean_accuracy", "processbench_f1", "exact_corrected"),
                *("exact_answered", "valid_rate", "out_of_range", "mae_worst"),
            ],
        },
    }
    return made


def table3_coverage(
    frame: pd.DataFrame,
    *,
    reference: str = "annotated",
    show_published: bool = True,
    draws: int = DRAWS,
    rng: Rng = 0,
) -> pd.DataFrame:
    """Table 3: coverage scores by deletion level against the reference; [+] control, κ, within 1, Holm's p."""
    made = metrics.coverage(frame, draws=draws, rng=rng)
    made = made.assign(stars=[stars(p) for p in made.get("p", [])])
    made = with_published(made, published.table3(), show_published)
    made.attrs = {
        "caption": "Coverage scores (0 to 4) by share of middle steps removed; 0% is the untouched chain. "
        f"Reference of this run: {reference}; of the published rows: GPT-4.1. Means and errors over "
        "answered items. Infl.: share of scores of 3 and 4. ρ: Spearman's with the reference, ** p "
        "< 0.01, *** p < 0.001 (uncorrected, as in the paper; Holm over this table beside it). W@1: "
        f"within 1 of the reference, over planned items. {INTERVALS}",
        "panels": {
            "Scores against the reference": [
                *("n", "unanswered", "mean", "sd", "reference_mean", "bias", "mae", "inflation", "rho"),
            ],
            "Agreement and non-answers": [
                *("n_compared", "p", "p_holm", "kappa", "within_1", "mae_worst", "valid_rate"),
            ],
        },
        "best_within": ["deletion_rate"],
        "writers": {"sd": "number2"},
    }
    return made


def table3_trend(frame: pd.DataFrame, *, draws: int = DRAWS, rng: Rng = 0) -> pd.DataFrame:
    """[+] Across the levels of a chain: do the scores fall as steps go missing?"""
    made = metrics.coverage_trend(frame, draws=draws, rng=rng)
    made.attrs = {
        "caption": "Coverage across deletion levels. Order accuracy: over pairs of versions of one chain of "
        "which one misses more steps, the share in which the fuller scores higher, ties one half, a "
        "pair without two scores wrong (50% is chance). ρ over all levels, levels of a chain "
        f"resampled together. {INTERVALS}",
    }
    return made
