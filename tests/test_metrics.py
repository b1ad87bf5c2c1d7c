"""Metrics on worked values, on made-up frames against outside references, and where nothing is defined."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats
from sklearn import calibration as sklearn_calibration
from sklearn.metrics import (
    balanced_accuracy_score,
    brier_score_loss,
    cohen_kappa_score,
    matthews_corrcoef,
    mean_absolute_error,
    roc_auc_score,
)

from c2faith import metrics, published
from c2faith.records import InputError
from frames import frames

pytestmark = pytest.mark.filterwarnings("error")
DRAWS = 200
NAN = np.nan


@pytest.fixture(scope="module")
def made():
    return frames(40, judges=2, seed=3)


def verdicts(task, values, **columns):
    """A judge's verdict frame: one chain an item unless `chain_id` says otherwise."""
    n = len(values)
    frame = pd.DataFrame(
        {
            "judge_id": "j",
            "item_id": [f"item-{k}" for k in range(n)],
            "chain_id": [f"chain-{k}" for k in range(n)],
            "kind": "perturbed",
            "n_steps": 10,
            "value": np.array(values, dtype=float),
            "status": ["refusal" if np.isnan(v) else "ok" for v in np.array(values, dtype=float)],
            "confidence": NAN,
        }
    )
    return frame.assign(task=task, **columns)


def only(table):
    assert len(table) == 1
    return table.iloc[0]


# Detection


def test_detection_by_hand():
    """Perturbed: flagged, flagged, passed, silent → 2/4 detected, 2/3 answered; clean: passed, passed, flagged,
    silent → 1/4 false alarms, 2/4 accepted. Balanced accuracy (2/4 + 2/4) / 2, J = 0."""
    frame = verdicts("detection", [0, 0, 1, NAN, 1, 1, 0, NAN], truth=[0] * 4 + [1] * 4)
    row = only(metrics.detection(frame, draws=DRAWS))
    assert (row.n, row.unanswered, row.n_clean, row.unanswered_clean) == (4, 1, 4, 1)
    assert row.detection == 0.5
    assert row.detection_answered == pytest.approx(2 / 3)
    assert row.false_alarm == 0.25
    assert row.clean_accuracy == 0.5
    assert row.balanced_accuracy == 0.5
    assert row.youden_j == 0
    assert row.mcc == 0
    assert row.valid_rate == 0.75
    assert row.sd == 0.5


def test_detection_agrees_with_scikit_learn(made):
    frame = made["detection"]
    table = metrics.detection(frame, draws=DRAWS).set_index("judge_id")
    for judge, rows in frame.groupby("judge_id"):
        truth = rows["truth"] == 0
        said = (rows["value"] == 0).where(rows["value"].notna(), ~truth)  # a non-answer is wrong
        row = table.loc[judge]
        assert row.balanced_accuracy == pytest.approx(balanced_accuracy_score(truth, said))
        assert row.mcc == pytest.approx(matthews_corrcoef(truth, said))
        known = rows["confidence"].notna()
        assert row.auroc == pytest.approx(roc_auc_score(truth[known], rows["confidence"][known]))
        caught = (rows["value"] == 0)[truth]
        assert row.detection == caught.mean()
        assert row.sd == pytest.approx(np.std(caught))
        assert row.detection_low <= row.detection <= row.detection_high
        assert row.wilson_low < row.detection < row.wilson_high


def test_detection_with_nothing_answered_is_0_and_its_answered_figure_undefined():
    frame = verdicts("detection", [NAN] * 4, truth=[0, 0, 1, 1])
    row = only(metrics.detection(frame, draws=DRAWS))
    assert (row.detection, row.valid_rate, row.balanced_accuracy) == (0, 0, 0)
    assert np.isnan([row.detection_answered, row.auroc]).all()


def test_detection_without_clean_twins_leaves_their_figures_undefined():
    frame = verdicts("detection", [0, 0, 1], truth=0)
    row = only(metrics.detection(frame, draws=DRAWS))
    assert row.detection == pytest.approx(2 / 3)
    names = ["false_alarm", "clean_accuracy", "balanced_accuracy", "youden_j", "mcc", "auroc"]
    assert np.isnan(row[names].astype(float)).all()


def test_one_chain_has_values_without_intervals():
    row = only(metrics.detection(verdicts("detection", [0], truth=0), draws=DRAWS))
    assert row.detection == 1
    assert np.isnan([row.detection_low, row.detection_high]).all()


def test_a_constant_judge_is_at_chance():
    row = only(metrics.detection(verdicts("detection", [0] * 6, truth=[0, 1] * 3, confidence=0.9), draws=DRAWS))
    assert (row.detection, row.false_alarm, row.balanced_accuracy, row.youden_j) == (1, 1, 0.5, 0)
    assert row.auroc == 0.5
    assert np.isnan(row.mcc)


def test_clean_twins_move_with_their_chain():
    """Each chain is right on one of its twins only, so balanced accuracy is 0.5 in every resample of chains."""
    values, truth, chains = [0, 0, 1, 1] * 5, [0, 1, 0, 1] * 5, np.repeat(np.arange(10), 2).astype(str)
    frame = verdicts("detection", values, truth=truth, chain_id=chains)
    row = only(metrics.detection(frame, draws=DRAWS))
    assert row.balanced_accuracy_low == row.balanced_accuracy_high == 0.5


def test_judges_keep_the_order_of_the_frame(made):
    frame = made["detection"].iloc[::-1]
    assert list(metrics.detection(frame, draws=2)["judge_id"]) == ["judge-1", "judge-0"]


def test_failure_patterns_of_the_paper():
    table = metrics.failure_patterns(published.exp1_frame()).set_index("missed_by")["count"]
    expected = {" + ".join(judges): count for judges, count in published.MISSED_BY.items()}
    assert table.to_dict() == expected


def test_outcomes_compare_items_that_every_judge_was_asked():
    a = verdicts("detection", [0, 1, NAN], truth=0)
    b = a.iloc[:2].assign(judge_id="k", value=[0.0, 0.0])
    caught = metrics.outcomes(pd.concat([a, b]))
    assert caught.to_dict("list") == {"j": [True, False], "k": [True, True]}


# Localization


def test_localization_by_hand():
    """Targets 5 in chains of 10: hit, 3 early, 1 late, missed (−1), silent; clean: −1, 2, silent.

    Exact 1/5, detected 3/5; MAE all (0 + 3 + 1 + 6) / 4 = 2.5; worst charges the silent one max(6, 4) = 6:
    16/5; MAE detected 4/3; within 1 and 2: 2/3; signed (0 − 3 + 1) / 3. Even misses of a wrong pick at N = 10,
    j = 5: (45 − 50) / 9 = −5/9; two of three detected are wrong: −10/27. Middle region of 10: 7 steps:
    (1 − 5/7) / (5 − 5/7) = 2/30. F1 of 1/5 and 1/3: 1/4.
    """
    frame = verdicts("localization", [5, 2, 6, -1, NAN, -1, 2, NAN], target=[5] * 5 + [-1] * 3)
    frame["kind"] = ["perturbed"] * 5 + ["clean"] * 3
    row = only(metrics.localization(frame, draws=DRAWS))
    expected = {
        "n": 5,
        "unanswered": 1,
        "n_detected": 3,
        "exact": 1 / 5,
        "exact_answered": 1 / 4,
        "detection": 3 / 5,
        "mae_all": 2.5,
        "mae_worst": 16 / 5,
        "mae_detected": 4 / 3,
        "within_1": 2 / 3,
        "within_2": 2 / 3,
        "signed_error": -2 / 3,
        "signed_null": -10 / 27,
        "signed_excess": -2 / 3 + 10 / 27,
        "slip_early": 0,
        "slip_late": 1 / 3,
        "clean_accuracy": 1 / 3,
        "processbench_f1": 1 / 4,
        "exact_corrected": 2 / 30,
        "valid_rate": 6 / 8,
    }
    assert row[list(expected)].astype(float).to_dict() == pytest.approx(expected)


def test_localization_agrees_with_scikit_learn(made):
    frame = made["localization"]
    table = metrics.localization(frame, draws=DRAWS).set_index("judge_id")
    for judge, rows in frame[frame["kind"] == "perturbed"].groupby("judge_id"):
        answered = rows[rows["value"].notna()]
        found = answered[answered["value"] >= 0]
        assert table.loc[judge, "mae_all"] == pytest.approx(
            mean_absolute_error(answered["target"], answered["value"])
        )
        assert table.loc[judge, "mae_detected"] == pytest.approx(
            mean_absolute_error(found["target"], found["value"])
        )


def test_processbench_f1_is_the_harmonic_mean(made):
    table = metrics.localization(made["localization"], draws=DRAWS)
    for row in table.itertuples():
        assert row.processbench_f1 == pytest.approx(scipy_stats.hmean([row.exact, row.clean_accuracy]))


def test_natural_errors_stand_apart(made):
    frame = made["localization"]
    natural = frame[frame["kind"] == "natural"]
    table = metrics.localization(frame, natural=True, draws=DRAWS)
    for row in table.itertuples():
        mine = natural[natural["judge_id"] == row.judge_id]
        assert row.n == (mine["target"] >= 0).sum()
        assert row.n + row.n_clean == len(mine)
        broken = mine[mine["target"] >= 0]
        assert row.exact == pytest.approx((broken["value"] == broken["target"]).mean())
        chance = (1 / broken["n_steps"]).mean()
        assert row.exact_corrected == pytest.approx((row.exact - chance) / (1 - chance))


@pytest.mark.parametrize(
    "value, names",
    [
        (-1, ["mae_detected", "within_1", "within_2", "signed_error", "signed_excess", "signed_p", "slip_late"]),
        (NAN, ["mae_all", "mae_detected", "exact_answered", "signed_error", "signed_p"]),
    ],
)
def test_localization_is_undefined_where_nothing_is_detected_or_answered(value, names):
    frame = verdicts("localization", [value] * 4, target=[3, 5, 4, 6])
    row = only(metrics.localization(frame, draws=DRAWS))
    assert (row.exact, row.detection) == (0, 0)
    assert np.isnan(row[[*names, "clean_accuracy", "processbench_f1"]].astype(float)).all()


def test_an_out_of_range_answer_is_counted():
    frame = verdicts("localization", [NAN, 4], target=4)
    frame.loc[0, "status"] = "schema_error"
    row = only(metrics.localization(frame, draws=DRAWS))
    assert (row.out_of_range, row.exact) == (0.5, 0.5)


def test_a_blind_judge_gains_nothing_from_chance():
    """Guessing the middle region's steps evenly is what `exact_corrected` calls 0: N = 10, region 2 … 8."""
    targets, guesses = np.divmod(np.arange(49), 7)
    frame = verdicts("localization", guesses + 2, target=targets + 2)
    row = only(metrics.localization(frame, draws=DRAWS))
    assert row.exact == pytest.approx(1 / 7)
    assert row.exact_corrected == pytest.approx(0, abs=1e-12)


def test_even_misses_have_no_excess_and_one_sided_misses_do():
    """Every other step of a chain of 10 picked once: the signed error is the null's, so its p is large."""
    others = [step for step in range(10) if step != 6]
    even = only(metrics.localization(verdicts("localization", others, target=6), draws=2000))
    assert even.signed_error == pytest.approx(even.signed_null)
    assert even.signed_p > 0.9
    early = only(metrics.localization(verdicts("localization", [4, 5] * 10, target=6), draws=2000))
    assert early.signed_excess == pytest.approx(-1.5 - (45 - 60) / 9)
    late = only(metrics.localization(verdicts("localization", [8, 9] * 10, target=6), draws=2000))
    assert late.signed_p < 0.01


def test_a_judge_beside_it_does_not_change_a_judges_numbers(made):
    both = metrics.localization(made["localization"], draws=DRAWS).set_index("judge_id").loc["judge-1"]
    alone = metrics.localization(made["localization"].query("judge_id == 'judge-1'"), draws=DRAWS).iloc[0]
    pd.testing.assert_series_equal(both, alone.drop("judge_id"), check_names=False, check_dtype=False)


# Coverage


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


# What makes a frame unfit

TASKS = {"detection": metrics.detection, "localization": metrics.localization, "coverage": metrics.coverage}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("status", ["api_error", "pending"])
def test_pending_items_refuse_a_final_number(task, status, made):
    frame = made[task].copy()
    frame.loc[frame.index[:3], ["status", "value"]] = [status, NAN]
    with pytest.raises(InputError, match=f"{task}: items still pending \\(3 of judge-0\\)"):
        TASKS[task](frame)


@pytest.mark.parametrize("task", TASKS)
def test_a_frame_of_another_task_or_with_an_item_twice_is_refused(task, made):
    with pytest.raises(InputError, match="lacks the column 'judge_id'"):
        TASKS[task](made[task].drop(columns="judge_id"))
    with pytest.raises(InputError, match="stands twice for judge judge-0"):
        TASKS[task](pd.concat([made[task], made[task].iloc[:1]]))


@pytest.mark.parametrize("task", TASKS)
def test_no_rows_make_an_empty_table(task, made):
    assert TASKS[task](made[task].iloc[:0]).empty


@pytest.mark.parametrize("task", TASKS)
def test_the_callers_frame_is_left_alone(task, made):
    before = made[task].copy()
    TASKS[task](made[task], draws=2)
    pd.testing.assert_frame_equal(made[task], before)
