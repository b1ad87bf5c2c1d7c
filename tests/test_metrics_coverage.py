"""Coverage metrics and calibration on worked values and against outside references."""

import numpy as np
import pytest
from scipy import stats as scipy_stats
from sklearn import calibration as sklearn_calibration
from sklearn.metrics import brier_score_loss, cohen_kappa_score, mean_absolute_error

from c2faith.analysis import metrics
from c2faith.records import InputError
from frames import frames, verdicts

pytestmark = pytest.mark.filterwarnings("error")
DRAWS = 200
NAN = np.nan


@pytest.fixture(scope="module")
def made():
    return frames(40, judges=2, seed=3)


def only(table):
    assert len(table) == 1
    return table.iloc[0]


def test_coverage_agrees_with_scipy_and_scikit_learn(made):
    frame = made["coverage"]
    table = metrics.coverage(frame, draws=DRAWS)
    for row in table.itertuples():
        mine = frame[(frame["judge_id"] == row.judge_id) & (frame["deletion_rate"] == row.deletion_rate)]
        scored = mine[mine["value"].notna()]
        theirs = scipy_stats.spearmanr(scored["value"], scored["reference"])
        assert row.rho == pytest.approx(theirs.statistic)
        assert row.p == pytest.approx(theirs.pvalue)
        assert row.mae == pytest.approx(mean_absolute_error(scored["reference"], scored["value"]))
        assert row.bias == pytest.approx(scored["value"].mean() - scored["reference"].mean())
        assert row.reference_mean == pytest.approx(mine["reference"].mean())
        assert row.sd == pytest.approx(scored["value"].std(ddof=0))
        assert row.inflation == pytest.approx((scored["value"] >= 3).mean())
        kappa = cohen_kappa_score(scored["value"].astype(int), scored["reference"].astype(int), weights="quadratic")
        assert row.kappa == pytest.approx(kappa)
        near = (scored["value"] - scored["reference"]).abs() <= 1
        assert row.within_1 == pytest.approx(near.sum() / len(mine))


def level(values, reference, **columns):
    return verdicts(
        "coverage", values, **{"reference": reference, "deletion_rate": 0.1, "realized_rate": 0.1} | columns
    )


def test_the_interval_of_rho_is_that_of_resampled_records():
    random = np.random.default_rng(1)
    x, y = random.integers(0, 5, 60), random.integers(0, 5, 60)
    row = only(metrics.coverage(level(x, y), draws=2000))
    picks = random.integers(60, size=(2000, 60))
    draws = [scipy_stats.spearmanr(x[pick], y[pick]).statistic for pick in picks]
    assert [row.rho_low, row.rho_high] == pytest.approx(np.quantile(draws, [0.025, 0.975]), abs=0.03)


def test_constant_scores_have_no_correlation():
    row = only(metrics.coverage(level([4, 4, 4, 4], [4, 3, 2, 1]), draws=DRAWS))
    assert np.isnan([row.rho, row.p, row.rho_low, row.p_holm]).all()
    assert (row.bias, row.mae, row.inflation, row.sd) == (1.5, 1.5, 1, 0)


def test_kappa_of_constants():
    """κ is 1 for equal scores, 0 for two constants apart (no agreement beyond chance), NaN for two equal ones."""
    for value, reference, kappa in (([0, 3, 4], [0, 3, 4], 1), ([4, 4], [3, 3], 0), ([4, 4], [4, 4], NAN)):
        assert only(metrics.coverage(level(value, reference), draws=DRAWS)).kappa == pytest.approx(
            kappa, nan_ok=True
        )


def test_coverage_without_a_reference_or_an_answer():
    row = only(metrics.coverage(level([4, 3], [NAN, NAN]), draws=DRAWS))
    assert row["mean"] == 3.5
    assert np.isnan([row.bias, row.mae, row.rho, row.kappa, row.within_1, row.reference_mean]).all()
    row = only(metrics.coverage(level([NAN, NAN], [4, 2]), draws=DRAWS))
    assert (row.within_1, row.valid_rate, row.n, row.unanswered) == (0, 0, 2, 2)
    assert row.mae_worst == 3  # |0 − 4| and |4 − 2| or |0 − 2|
    assert np.isnan([row["mean"], row.sd, row.mae, row.inflation]).all()


def test_holm_corrects_over_the_whole_table(made):
    table = metrics.coverage(made["coverage"], draws=2)
    assert table["p_holm"].min() == pytest.approx(len(table) * table["p"].min())


def test_order_accuracy_by_hand():
    """One chain, levels 0, .3, .7 with scores 4, 4, 2: pairs tie, right, right: 2.5 of 3. Another is silent at .7:
    its pairs 4 > 3 right, two without scores: 1 of 3. Together 3.5 of 6, answered 3.5 of 4, ties 1 of 4."""
    frame = level(
        [4, 4, 2, 4, 3, NAN],
        NAN,
        chain_id=["a"] * 3 + ["b"] * 3,
        deletion_rate=[0, 0.3, 0.7] * 2,
        realized_rate=[0, 0.4, 0.8] * 2,
    )
    row = only(metrics.coverage_trend(frame, draws=DRAWS))
    assert (row.n_pairs, row.order_accuracy, row.order_answered) == (6, 3.5 / 6, 3.5 / 4)
    assert row.order_ties == 0.25
    assert row.rho_realized == pytest.approx(
        scipy_stats.spearmanr([4, 4, 2, 4, 3], [0, 0.4, 0.8, 0, 0.4]).statistic
    )


def test_levels_that_remove_the_same_are_no_pair():
    frame = level([4, 3], NAN, chain_id="a", deletion_rate=[0.1, 0.3], realized_rate=[0.5, 0.5])
    row = only(metrics.coverage_trend(frame, draws=DRAWS))
    assert row.n_pairs == 0
    assert np.isnan(row.order_accuracy)


# Calibration


def test_calibration_agrees_with_scikit_learn(made):
    frame = made["detection"]
    curve = metrics.reliability(frame, draws=DRAWS)
    table = metrics.calibration(frame, draws=DRAWS).set_index("judge_id")
    for judge, rows in frame[frame["confidence"].notna()].groupby("judge_id"):
        wrong = (rows["truth"] == 0).to_numpy()
        confidence = rows["confidence"].to_numpy()
        share, mean = sklearn_calibration.calibration_curve(wrong, confidence, n_bins=10)
        mine = curve[curve["judge_id"] == judge]
        assert mine["wrong"].to_numpy() == pytest.approx(share)
        assert mine["confidence"].to_numpy() == pytest.approx(mean)
        ece = (mine["n"] * (mine["wrong"] - mine["confidence"]).abs()).sum() / len(rows)
        assert table.loc[judge, "ece"] == pytest.approx(ece)
        assert table.loc[judge, "brier"] == pytest.approx(brier_score_loss(wrong, confidence))


def test_judges_without_confidences_are_not_in_the_calibration():
    assert metrics.calibration(verdicts("detection", [0, 1], truth=[0, 1]), draws=2).empty


def test_calibration_of_another_task_is_refused(made):
    with pytest.raises(InputError, match="choose from detection, localization"):
        metrics.calibration(made["coverage"], "coverage")
