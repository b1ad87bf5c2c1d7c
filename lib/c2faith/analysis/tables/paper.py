"""The paper's tables, with what it leaves out beside them and its printed rows under ours."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from c2faith.analysis import predictors, published
from c2faith.analysis.metrics import Measured
from c2faith.analysis.stats import holm, stars
from c2faith.analysis.tables.spec import INTERVALS, described, table
from c2faith.analysis.words import appendix_f

OURS, PRINTED = "run", "published"


def with_published(ours: pd.DataFrame, printed: pd.DataFrame, show: bool) -> pd.DataFrame:
    """Our rows, marked as this run's, and the paper's printed rows under them, marked as published."""
    ours = ours.assign(origin=OURS)
    if not show:
        return ours
    printed = printed.assign(origin=PRINTED)
    return pd.concat([ours, printed[[name for name in printed if name in ours]]], ignore_index=True)


@table("detection")
def table1_detection(run: Measured, *, show_published: bool = True, alpha: float = 0.05) -> pd.DataFrame:
    """Table 1: detection of replaced steps; [+] false alarms on clean twins and measures of both.

    `better_than` lists the `key`s of the judges that a judge detects significantly more than: McNemar's test
    with continuity correction, Bonferroni-corrected over all pairs, below `alpha` (see `table1_pairs`).
    """
    made, pairs = run.of("detection", "detection"), run.of("pairs", "detection")
    keys = dict(zip(made["judge_id"], ascii_lowercase, strict=False))
    won: dict[str, list[str]] = {judge: [] for judge in made["judge_id"]}
    for row in pairs[pairs["p_bonferroni"] < alpha].itertuples():
        a_won = row.only_a > row.only_b
        winner, loser = (row.judge_a, row.judge_b) if a_won else (row.judge_b, row.judge_a)
        won[winner].append(keys.get(loser, loser))
    better = [" ".join(sorted(losers)) for losers in won.values()]
    made = made.assign(key=made["judge_id"].map(keys), better_than=better)
    return described(
        with_published(made, _table1_published(keys), show_published),
        "Exp 1: binary detection of replaced steps. A non-answer counts as a miss. Better than: "
        "judges (by key) significantly below, McNemar's test with continuity correction, "
        f"Bonferroni-corrected p < {alpha:g}. sd: population standard deviation of the 0/1 outcomes. "
        f"{INTERVALS} Wilson's interval holds at 0 and 100% too.",
        panels={
            "Perturbed steps": "key n unanswered detection better_than sd wilson detection_answered valid_rate",
            "With the clean twins": "n_clean unanswered_clean false_alarm balanced_accuracy youden_j mcc auroc",
        },
    )


def _table1_published(taken: dict[str, str]) -> pd.DataFrame:
    """The printed rows with the next free keys; DeepSeek and o4-mini are marked as better than GPT-4.1."""
    printed = published.table1()
    free = [key for key in ascii_lowercase if key not in taken.values()]
    names = dict(zip(printed["judge_id"], [*free, *printed["judge_id"]], strict=False))
    better = np.where(printed["significant"], names["GPT-4.1"], "")
    return printed.assign(key=printed["judge_id"].map(names), better_than=better, unanswered=np.nan)


@table("detection")
def table1_pairs(run: Measured) -> pd.DataFrame:
    """Every pair of judges on the perturbed steps that both were asked: difference, McNemar's tests."""
    return described(
        run.of("pairs", "detection"),
        "Exp 1, pairs of judges on the same perturbed steps: difference of detection rates, "
        "McNemar's p with continuity correction and exact; corrections (Bonferroni, Holm) of the "
        f"former over the table's pairs. {INTERVALS}",
        keys=["judge_a", "judge_b"],
    )


@table("localization")
def table2_localization(run: Measured, *, show_published: bool = True) -> pd.DataFrame:
    """Table 2: localization of replaced steps; [+] direction of errors, clean chains, corrections for chance."""
    made = run.of("localization", "localization")
    if len(made):
        made["signed_p_holm"] = holm(made["signed_p"])
    return described(
        with_published(made, published.table2(), show_published),
        "Exp 2: localization of replaced steps. A non-answer is neither exact nor detected, and no "
        "−1: MAE all rests on answered chains with −1 taken literally, its worst case charges each "
        "non-answer the largest error its chain allows. MAE det., W@k and signed errors: detected "
        "chains only. Even misses: the signed error if wrong picks fell evenly on the other steps "
        "of their chain (the permutation null of the excess; Holm over judges). Chance: a guess in "
        "the middle region. ProcessBench F1: harmonic mean of exact match and clean accuracy. "
        f"{INTERVALS}",
        panels={
            "Where the broken step is": "n unanswered exact detection mae_all mae_detected within_1 within_2",
            "Direction of errors, over detected chains": "n_detected signed_error signed_null signed_excess "
            "signed_p signed_p_holm slip_early slip_late",
            "With the clean twins, chance and non-answers": "n_clean unanswered_clean clean_accuracy "
            "processbench_f1 exact_corrected exact_answered valid_rate out_of_range mae_worst",
        },
    )


@table("coverage")
def table3_coverage(run: Measured, *, show_published: bool = True) -> pd.DataFrame:
    """Table 3: coverage scores by deletion level against the reference; [+] control, κ, within 1, Holm's p."""
    made = run.of("coverage", "coverage")
    made = made.assign(stars=[stars(p) for p in made.get("p", [])])
    return described(
        with_published(made, published.table3(), show_published),
        "Coverage scores (0 to 4) by share of middle steps removed; 0% is the untouched chain. "
        f"Reference of this run: {run.reference}; of the published rows: GPT-4.1. Means and errors over "
        "answered items. Infl.: share of scores of 3 and 4. ρ: Spearman's with the reference, ** p "
        "< 0.01, *** p < 0.001 (uncorrected, as in the paper; Holm over this table beside it). W@1: "
        f"within 1 of the reference, over planned items. {INTERVALS}",
        panels={
            "Scores against the reference": "n unanswered mean sd reference_mean bias mae inflation rho",
            "Agreement and non-answers": "n_compared p p_holm kappa within_1 mae_worst valid_rate",
        },
        best_within=["deletion_rate"],
        writers={"sd": "number2"},
    )


@table("coverage")
def table3_trend(run: Measured) -> pd.DataFrame:
    """[+] Across the levels of a chain: do the scores fall as steps go missing?"""
    return described(
        run.of("coverage_trend", "coverage"),
        "Coverage across deletion levels. Order accuracy: over pairs of versions of one chain of "
        "which one misses more steps, the share in which the fuller scores higher, ties one half, a "
        "pair without two scores wrong (50% is chance). ρ over all levels, levels of a chain "
        f"resampled together. {INTERVALS}",
    )


RANKED = ("detection", "localization", "coverage")
PAPER_ROWS = {
    "Exp 1 detect": ("percent", "high"),
    "Exp 2 exact match": ("percent", "high"),
    "Cov. ρ @{high:.0%}": ("number3", "high"),
    "Cov. bias @{low:.0%}": ("signed2", "zero"),
}
FAIR_ROWS = {
    "Exp 1 balanced acc.": ("percent", "high"),
    "Exp 2 ProcessBench F1": ("percent", "high"),
    "Cov. order accuracy": ("percent", "high"),
    "Cov. MAE, all levels": ("number2", "low"),
}


@table()
def table4_capability(run: Measured, *, show_published: bool = True) -> pd.DataFrame:
    """Table 4: the paper's four rows and its rank; [+] four rows that false alarms and clean chains count in.

    Columns: `task`, `writer` and `best` (how the row's numbers are written and which is best), one column a judge,
    and the paper's judges as "<judge> (published)". Intervals of the values are in Tables 1 to 3.
    """
    frames = [run.verdicts[task] for task in RANKED if task in run.verdicts]
    judges = pd.unique(pd.concat([frame["judge_id"] for frame in frames])) if frames else []
    asked = [len(frames) == len(RANKED) and all((f["judge_id"] == j).any() for f in frames) for j in judges]
    levels = run.verdicts["coverage"]["deletion_rate"] if "coverage" in run.verdicts else pd.Series(dtype=float)
    above = levels[levels > 0] if (levels > 0).any() else pd.Series(published.LEVELS)
    low, high = above.min(), above.max()
    ours = _capabilities(run, judges, low, high).T
    forms = {name.format(low=low, high=high): form for name, form in PAPER_ROWS.items()}
    block = _ranked(ours.iloc[:4].set_axis(list(forms)), asked, list(forms.values()), "paper's rows")
    if show_published:
        printed = _printed().set_axis(list(forms)).rename(columns=lambda judge: f"{judge} (published)")
        theirs = _ranked(printed, [True] * printed.shape[1], list(forms.values()), "paper's rows")
        block = block.join(theirs.drop(columns=["writer", "best"]))
    fair = _ranked(ours.iloc[4:].set_axis(list(FAIR_ROWS)), asked, list(FAIR_ROWS.values()), "fair rows")
    made = pd.concat([block, fair]).rename_axis("task").reset_index()
    names = [name for name in made if name not in ("task", "writer", "best")]
    return described(
        made,
        "Cross-task capability; bold: best of a row. Mean rank: over the four rows above it, ties sharing theirs; "
        "an undefined value (a constant score has no ρ) ranks last, and a judge that was not put to every task has "
        "none and takes no place; published judges and this run's are ranked apart. Overall rank: the order of "
        "mean ranks. The fair rows put clean twins and all levels into the comparison: balanced accuracy, F1 of "
        "exact match and clean-chain accuracy, order accuracy across the levels of a chain, MAE against the "
        "reference. The published rank is the one that this rule gives the printed values; the paper prints 3rd, "
        "Mixed and 1st without a rule.",
        keys=["task"],
        panels={"": names},
        by_row=True,
        groups=[list(ours.columns), [name for name in names if name not in ours.columns]],
    )


def _capabilities(run: Measured, judges: Sequence[str], low: float, high: float) -> pd.DataFrame:
    """The eight values (columns) of every judge (rows), NaN where undefined."""
    made = pd.DataFrame(index=pd.Index(judges, name="judge_id"))
    for metric, task, names in (
        ("detection", "detection", ["detection", "balanced_accuracy"]),
        ("localization", "localization", ["exact", "processbench_f1"]),
        ("coverage_trend", "coverage", ["order_accuracy"]),
    ):
        if task in run.verdicts and len(found := run.of(metric, task)):
            made = made.join(found.set_index("judge_id")[names])
    if "coverage" in run.verdicts and len(found := run.of("coverage", "coverage")):
        at = {level: rows.set_index("judge_id") for level, rows in found.groupby("deletion_rate")}
        empty = pd.DataFrame(columns=["rho", "bias"])
        made = made.assign(rho=at.get(high, empty)["rho"], bias=at.get(low, empty)["bias"])
        weighted = found.assign(mae=found["mae"] * found["n_compared"]).groupby("judge_id")
        complete = weighted["n_compared"].min() > 0
        mae = (weighted["mae"].sum() / weighted["n_compared"].sum()).where(complete)
        made = made.assign(mae=mae)
    order = ["detection", "exact", "rho", "bias", "balanced_accuracy", "processbench_f1", "order_accuracy", "mae"]
    return made.reindex(columns=order).astype(float)


def _printed() -> pd.DataFrame:
    """The paper's four rows, from its Tables 1 to 3."""
    coverage = published.table3().set_index(["deletion_rate", "judge_id"])
    rows = [
        published.table1().set_index("judge_id")["detection"],
        published.table2().set_index("judge_id")["exact"],
        coverage.loc[published.LEVELS[-1], "rho"],
        coverage.loc[published.LEVELS[0], "bias"],
    ]
    return pd.DataFrame(rows)[list(published.JUDGES)]


def _ranked(
    values: pd.DataFrame, asked: Sequence[bool], forms: Sequence[tuple[str, str]], name: str
) -> pd.DataFrame:
    """Rows of values, then their mean rank and the overall rank; none for a judge that was not asked all."""
    sign = {"high": lambda row: -row, "low": lambda row: row, "zero": np.abs}
    complete = values.loc[:, list(asked)]  # a judge that has no rank takes no place either
    ranks = [
        rankdata(sign[best](row).fillna(np.inf))
        for (_, row), (_, best) in zip(complete.iterrows(), forms, strict=True)
    ]
    mean = pd.Series(np.mean(ranks, axis=0), complete.columns).reindex(values.columns)
    block = values.assign(writer=[form[0] for form in forms], best=[form[1] for form in forms])
    block.loc[f"Mean rank ({name})"] = {**mean, "writer": "number2", "best": "low"}
    block.loc[f"Overall rank ({name})"] = {**mean.rank(method="min"), "writer": "count", "best": "low"}
    return block


@table("detection", "items")
def table5_predictors(run: Measured, *, show_published: bool = True) -> pd.DataFrame:
    """Table 5: mean features of caught and missed perturbed steps, and their difference."""
    made = predictors.compare(run.verdicts["detection"], run.items, **run.sampled)
    printed = published.table5().rename(columns={"difference": "delta"})
    return described(
        with_published(made, printed, show_published),
        "Exp 1: mean features of the perturbed steps that a judge catches (correct) and misses or "
        f"leaves unanswered (wrong). p: Mann-Whitney, Holm over the table. {INTERVALS}",
        keys=["judge_id", "origin", "feature"],
    )


@table("detection", "items")
def table5_logistic(run: Measured) -> pd.DataFrame:
    """[+] Beside Table 5: all features at once, so that each is seen with the others held fixed."""
    return described(
        predictors.logistic(run.verdicts["detection"], run.items),
        "Exp 1: logistic regression of being caught on the features of Table 5, standardized: odds "
        "ratio for one standard deviation more, Wald intervals with robust errors, Holm over the "
        "table. Empty where a feature does not vary or no finite fit exists.",
        keys=["judge_id", "feature"],
    )


@table("detection", "items")
def table6_edit_types(run: Measured, *, show_published: bool = True) -> pd.DataFrame:
    """Table 6: detection rate by edit type; `other` (similarity above 0.9, neither swap) is not in the paper."""
    made = predictors.by_edit_type(run.verdicts["detection"], run.items, **run.sampled)
    return described(
        with_published(made, published.table6(), show_published),
        "Exp 1: detection rate by edit type. Similarity of original and perturbed step: swaps above "
        "0.9, minor 0.8 to 0.9, moderate 0.5 up to 0.8, major below 0.5; other: above 0.9, neither "
        f"numbers alone nor an operator changed. {INTERVALS}",
        keys=["judge_id", "origin", "edit_type"],
        panels={"": "n unanswered detection wilson"},
        best_within=["edit_type"],
    )


@table("detection", "items")
def appendix_f_words(run: Measured) -> pd.DataFrame:
    """Appendix F: words over-represented in reasoning and steps, correct detections against false acceptances."""
    return described(
        appendix_f(run.verdicts["detection"], run.items),
        "Exp 1, perturbed steps: words and phrases over-represented in correct detections and in "
        "false acceptances, in the judge's reasoning and in the steps it was shown. Log-odds with "
        "an informative Dirichlet prior; z is in standard errors, shown beyond 1.96; Holm over all phrases of a "
        "judge and place.",
        keys=["judge_id", "where", "over"],
        panels={"": "word count_correct count_wrong z p_holm"},
    )
