"""Detection metrics on worked values and against outside references; what makes any frame unfit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score, matthews_corrcoef, roc_auc_score

from c2faith.analysis import metrics, published
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
