"""Features and edit types of caught and missed steps, against outside references and worked values."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats
from sklearn.linear_model import LogisticRegression

from c2faith.analysis import predictors
from c2faith.dataset import edits
from frames import frames

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def made():
    """Steps of unequal length and notation, so that all features vary."""
    frame = frames(120, 2, seed=5)
    draw = np.random.default_rng(5)
    steps = [
        "we see " * draw.integers(1, 9) + "$" + "+".join("x" * k for k in range(1, draw.integers(3, 9))) + "$"
        for _ in range(120)
    ]
    frame["items"] = frame["items"].assign(perturbed_step=steps)
    return frame


def test_features_are_those_of_edits(made):
    items = made["items"]
    table = predictors.features(items)
    row = items.iloc[7]
    expected = edits.features(row["original_step"], row["perturbed_step"], row["target"], len(row["steps"]))
    assert table.loc[row["item_id"]].to_dict() == expected


def test_means_of_caught_and_missed_steps(made):
    table = predictors.compare(made["detection"], made["items"], draws=200)
    bad = made["detection"].query("truth == 0 and judge_id == 'judge-1'").set_index("item_id")
    known = predictors.features(made["items"]).loc[bad.index]
    caught = bad["value"] == 0  # a non-answer is not caught
    row = table.set_index(["judge_id", "feature"]).loc[("judge-1", "math_symbol_density")]
    assert (row["n_correct"], row["n_wrong"]) == (caught.sum(), (~caught).sum())
    right, wrong = known.loc[caught, "math_symbol_density"], known.loc[~caught, "math_symbol_density"]
    assert row["correct"] == pytest.approx(right.mean())
    assert row["delta"] == pytest.approx(right.mean() - wrong.mean())
    assert row["delta_low"] < row["delta"] < row["delta_high"]
    assert row["p"] == pytest.approx(scipy_stats.mannwhitneyu(right, wrong).pvalue)


def test_logistic_regression_agrees_with_scikit_learn(made):
    table = predictors.logistic(made["detection"], made["items"]).set_index(["judge_id", "feature"])
    bad = made["detection"].query("truth == 0 and judge_id == 'judge-1'").set_index("item_id")
    x = predictors.features(made["items"]).loc[bad.index]
    z = (x - x.mean()) / x.std(ddof=0)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(z, bad["value"] == 0)
    ours = table.loc["judge-1", "odds_ratio"][z.columns]
    assert np.log(ours).to_numpy() == pytest.approx(theirs.coef_[0], abs=1e-4)


@pytest.mark.parametrize("value", [0.0, 1.0, np.nan])
def test_a_judge_that_never_or_always_misses_has_no_regression(made, value):
    frame = made["detection"].assign(value=value, status="ok")
    table = predictors.logistic(frame, made["items"])
    assert table["odds_ratio"].isna().all()
    assert predictors.compare(frame, made["items"], draws=10)["delta"].isna().all()


def test_perfect_separation_is_undefined(made):
    dense = predictors.features(made["items"])["math_symbol_density"]
    frame = made["detection"].query("truth == 0").copy()
    frame["value"] = (frame["item_id"].map(dense) < dense.median()).astype(float)
    assert predictors.logistic(frame, made["items"])["odds_ratio"].isna().all()


def test_a_constant_feature_is_undefined_and_the_others_are_not(made):
    items = made["items"].assign(perturbed_step="the same $x$")
    table = predictors.logistic(made["detection"], items).set_index(["judge_id", "feature"])["odds_ratio"]
    assert np.isnan(table["judge-0", "word_count"])
    assert not np.isnan(table["judge-0", "relative_position"])


def test_rates_by_edit_type_sum_to_the_whole(made):
    table = predictors.by_edit_type(made["detection"], made["items"], draws=50)
    bad = made["detection"].query("truth == 0")
    for judge, rows in table.groupby("judge_id"):
        caught = (bad.loc[bad["judge_id"] == judge, "value"] == 0).sum()
        assert rows["n"].sum() == 120
        assert (rows["n"] * rows["detection"]).sum() == pytest.approx(caught)
        assert rows["edit_type"].to_list() == [kind for kind in edits.EDIT_TYPES if kind in set(rows["edit_type"])]


def test_a_type_with_one_item_has_no_bootstrap_interval():
    frame = pd.DataFrame(
        {
            "judge_id": "j",
            "item_id": ["a"],
            "chain_id": ["a"],
            "kind": "perturbed",
            "n_steps": 6,
            "truth": 0,
            "value": [0.0],
            "status": "ok",
        }
    )
    row = predictors.by_edit_type(frame, pd.DataFrame({"item_id": ["a"], "edit_type": ["other"]}), draws=5).iloc[0]
    assert row["detection"] == 1
    assert np.isnan(row["detection_low"])
    assert 0 < row["wilson_low"] < 1
