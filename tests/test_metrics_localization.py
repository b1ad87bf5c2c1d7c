"""Localization metrics on worked values and against outside references."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats
from sklearn.metrics import mean_absolute_error

from c2faith.analysis import metrics
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
