"""What a caught negation looks like: features and edit types of the perturbed steps against the outcomes."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from scipy import stats as scipy_stats
from statsmodels.discrete.discrete_model import Logit
from statsmodels.tools.sm_exceptions import ConvergenceWarning, PerfectSeparationWarning

from c2faith.analysis.resampling import DRAWS, LEVEL, Resamples, Rng, checked, estimates, means, per_judge
from c2faith.analysis.stats import holm, wilson
from c2faith.dataset import edits

FEATURES = (
    "math_symbol_density",
    "edit_similarity",
    "relative_position",
    "word_count",
    "chain_length",
    "character_count",
)


def features(items: pd.DataFrame) -> pd.DataFrame:
    """The six features of every causality item, indexed by `item_id`."""
    rows = [
        edits.features(row.original_step, row.perturbed_step, row.target, len(row.steps))
        for row in items.itertuples()
    ]
    return pd.DataFrame(rows, index=pd.Index(items["item_id"], name="item_id"), columns=list(FEATURES))


def compare(frame: pd.DataFrame, items: pd.DataFrame, *, draws: int = DRAWS, rng: Rng = 0) -> pd.DataFrame:
    """Mean features of caught and of missed perturbed steps, one row per judge and feature.

    Columns: `n_correct`, `n_wrong` (missed or unanswered), `correct`, `wrong` (means), `delta` = correct − wrong
    with `_low` and `_high`, and `p` of the Mann-Whitney test with `p_holm`, corrected over the whole table.

    Source: C2-Faith, section 5.5.1 and Table 5.
    """
    joined = _joined(frame, features(items))
    resamples, rows = Resamples.draw(joined["chain_id"], draws, rng), []
    for judge, mine in per_judge(joined):
        caught = mine["caught"].to_numpy()
        sides = {(name, side): (mine[name], caught == side) for name in FEATURES for side in (True, False)}
        found = means(resamples, mine["chain_id"], sides)
        for name in FEATURES:
            (correct, n_correct), (wrong, n_wrong) = found[name, True], found[name, False]
            x, both = mine[name].to_numpy(float), n_correct and n_wrong
            rows.append(
                {
                    "judge_id": judge,
                    "feature": name,
                    "n_correct": n_correct,
                    "n_wrong": n_wrong,
                    "correct": float(correct[0]),
                    "wrong": float(wrong[0]),
                    **estimates({"delta": (correct - wrong, min(n_correct, n_wrong))}),
                    "p": float(scipy_stats.mannwhitneyu(x[caught], x[~caught]).pvalue) if both else np.nan,
                }
            )
    table = pd.DataFrame(rows)
    return table.assign(p_holm=holm(table["p"])) if len(table) else table


def logistic(frame: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Logistic regression of being caught on all six features at once, one row per judge and feature.

    Columns: `n`, `odds_ratio` for one standard deviation more of the feature, with its Wald interval (`_low`,
    `_high`; heteroscedasticity-robust), `p`, and `p_holm` corrected over the whole table. NaN for a feature that
    does not vary, and throughout where the model cannot be fitted (too few misses, or perfect separation).
    """
    rows = []
    for judge, mine in per_judge(_joined(frame, features(items))):
        x = mine[list(FEATURES)].astype(float)
        x = x.loc[:, x.nunique() > 1]
        fitted = _fit(mine["caught"].astype(float).to_numpy(), (x - x.mean()) / x.std(ddof=0))
        for name, row in fitted.reindex(FEATURES).iterrows():
            rows.append({"judge_id": judge, "feature": name, "n": len(mine), **row})
    table = pd.DataFrame(rows)
    return table.assign(p_holm=holm(table["p"])) if len(table) else table


def _fit(caught: np.ndarray, z: pd.DataFrame) -> pd.DataFrame:
    """Odds ratios with intervals and p, by feature; NaN where there is no finite maximum."""
    undefined = pd.DataFrame(np.nan, z.columns, ["odds_ratio", "odds_ratio_low", "odds_ratio_high", "p"])
    design = np.column_stack([np.ones(len(z)), z])
    fewest = min(caught.sum(), len(caught) - caught.sum())
    if not z.shape[1] or fewest < 2 or np.linalg.matrix_rank(design) < design.shape[1]:
        return undefined
    no_maximum = (ConvergenceWarning, PerfectSeparationWarning, RuntimeWarning)
    with warnings.catch_warnings():
        for category in no_maximum:
            warnings.simplefilter("error", category)
        try:
            model = Logit(caught, design).fit(disp=0, maxiter=200, cov_type="HC1")
            low, high = model.conf_int(alpha=1 - LEVEL)[1:].T
            columns = np.exp(model.params[1:]), np.exp(low), np.exp(high), model.pvalues[1:]
        except (*no_maximum, np.linalg.LinAlgError):
            return undefined
    return pd.DataFrame(np.column_stack(columns), z.columns, undefined.columns)


def by_edit_type(frame: pd.DataFrame, items: pd.DataFrame, *, draws: int = DRAWS, rng: Rng = 0) -> pd.DataFrame:
    """Detection rate by edit type, one row per judge and type that occurs.

    Columns: `edit_type`, `n`, `unanswered`, `detection` with `_low` and `_high`, and `wilson_low`, `wilson_high`.

    Source: C2-Faith, Appendix E and Table 6; `edits.edit_type` owns the bounds.
    """
    joined = _joined(frame, items.set_index("item_id")[["edit_type"]])
    resamples, rows = Resamples.draw(joined["chain_id"], draws, rng), []
    for judge, mine in per_judge(joined):
        for kind in edits.EDIT_TYPES:
            those = mine[mine["edit_type"] == kind]
            if len(those):
                low, high = wilson(int(those["caught"].sum()), len(those))
                head = {"judge_id": judge, "edit_type": kind, "n": len(those)}
                head["unanswered"] = int(those["value"].isna().sum())
                rates = estimates(means(resamples, those["chain_id"], {"detection": those["caught"]}))
                rows.append(head | rates | {"wilson_low": low, "wilson_high": high})
    return pd.DataFrame(rows)


def _joined(frame: pd.DataFrame, about: pd.DataFrame) -> pd.DataFrame:
    """The perturbed steps' verdicts with what is known of their items; `caught` is False for a non-answer."""
    bad = checked(frame, "detection", "truth")[frame["truth"] == 0]
    keep = bad[["judge_id", "item_id", "chain_id", "value"]].assign(caught=bad["value"] == 0)
    return keep.merge(about, left_on="item_id", right_index=True, how="inner")
