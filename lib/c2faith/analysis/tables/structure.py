"""Tables 5 and 6: what caught negations look like, with a logistic regression beside the paper's means."""

from __future__ import annotations

import pandas as pd

from c2faith.analysis import predictors, published
from c2faith.analysis.resampling import DRAWS
from c2faith.analysis.tables.paper import INTERVALS, Rng, with_published

_KEYS = ["judge_id", "origin"]


def table5_predictors(
    frame: pd.DataFrame, items: pd.DataFrame, *, show_published: bool = True, draws: int = DRAWS, rng: Rng = 0
) -> pd.DataFrame:
    """Table 5: mean features of caught and missed perturbed steps, and their difference."""
    made = predictors.compare(frame, items, draws=draws, rng=rng)
    printed = published.table5().rename(columns={"difference": "delta"})
    made = with_published(made, printed, show_published)
    made.attrs = {
        "caption": "Exp 1: mean features of the perturbed steps that a judge catches (correct) and misses or "
        f"leaves unanswered (wrong). p: Mann-Whitney, Holm over the table. {INTERVALS}",
        "keys": [*_KEYS, "feature"],
    }
    return made


def table5_logistic(frame: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """[+] Beside Table 5: all features at once, so that each is seen with the others held fixed."""
    made = predictors.logistic(frame, items)
    made.attrs = {
        "caption": "Exp 1: logistic regression of being caught on the features of Table 5, standardized: odds "
        "ratio for one standard deviation more, Wald intervals with robust errors, Holm over the "
        "table. Empty where a feature does not vary or no finite fit exists.",
        "keys": ["judge_id", "feature"],
    }
    return made


def table6_edit_types(
    frame: pd.DataFrame, items: pd.DataFrame, *, show_published: bool = True, draws: int = DRAWS, rng: Rng = 0
) -> pd.DataFrame:
    """Table 6: detection rate by edit type; `other` (similarity above 0.9, neither swap) is not in the paper."""
    made = predictors.by_edit_type(frame, items, draws=draws, rng=rng)
    made = with_published(made, published.table6(), show_published)
    made.attrs = {
        "caption": "Exp 1: detection rate by edit type. Similarity of original and perturbed step: swaps above "
        "0.9, minor 0.8 to 0.9, moderate 0.5 up to 0.8, major below 0.5; other: above 0.9, neither "
        f"numbers alone nor an operator changed. {INTERVALS}",
        "keys": [*_KEYS, "edit_type"],
        "panels": {"": ["n", "unanswered", "detection", "wilson"]},
        "best_within": ["edit_type"],
    }
    return made
