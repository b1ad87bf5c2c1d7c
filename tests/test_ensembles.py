"""Judges that vote, and judges whose picks are shifted."""

import numpy as np
import pandas as pd
import pytest

from c2faith.analysis import metrics, published
from c2faith.analysis.metrics.ensembles import any_flag, ensembles, majority, mean_confidence
from c2faith.analysis.metrics.localization import best_shift, mean_shift
from frames import frames

pytestmark = pytest.mark.filterwarnings("error")
NAN = np.nan


def test_the_rules_by_hand():
    flags = np.array([[1, 1, 0], [1, 0, 0], [1, NAN, NAN], [0, 1, NAN], [NAN, NAN, NAN]])
    assert majority(flags, flags).tolist()[:4] == [1, 0, 1, 0]  # a tie is no majority
    assert any_flag(flags, flags).tolist()[:4] == [1, 1, 1, 1]
    assert np.isnan([majority(flags, flags)[4], any_flag(flags, flags)[4]]).all()
    confidences = np.array([[0.9, 0.3, 0.4], [0.5, 0.5, 0.5], [0.9, 0.9, NAN]])
    found = mean_confidence(confidences, confidences)
    assert found.tolist()[:2] == [1, 0]
    assert np.isnan(found[2])


def test_a_judge_alone_is_what_detection_says():
    frame = frames(30, 3, seed=2)["detection"]
    alone = ensembles(frame, draws=100).query("n_judges == 1").set_index("judges")
    table = metrics.detection(frame, draws=100).set_index("judge_id")
    for name in ("n", "unanswered", "detection", "false_alarm", "balanced_accuracy", "detection_low"):
        assert alone.loc[table.index, name].to_list() == pytest.approx(table[name].to_list())


def test_any_flag_catches_no_less_and_alarms_no_less():
    frame = frames(60, 3, seed=2)["detection"].dropna(subset="value")
    table = ensembles(frame, draws=2).set_index(["judges", "rule"])
    any_of = table.loc[("judge-0 + judge-1 + judge-2", "any flag")]
    most = table.loc[("judge-0 + judge-1 + judge-2", "majority")]
    assert any_of["detection"] >= most["detection"]
    assert any_of["false_alarm"] >= most["false_alarm"]


def test_the_papers_claim_from_its_own_counts():
    """450 − 8 missed by all = 442 for three; − 1 more for DeepSeek and o4-mini = 441, exactly 98.0%."""
    table = ensembles(published.exp1_frame(), draws=2).set_index(["judges", "rule"])["detection"] * 450
    assert table["GPT-4.1 + DeepSeek-V3.1 + o4-mini", "any flag"] == pytest.approx(442)
    assert table["DeepSeek-V3.1 + o4-mini", "any flag"] == pytest.approx(441)
    assert table["GPT-4.1 + DeepSeek-V3.1", "any flag"] == pytest.approx(435)
    assert table["GPT-4.1 + o4-mini", "any flag"] == pytest.approx(419)
    assert table["GPT-4.1 + DeepSeek-V3.1 + o4-mini", "majority"] == pytest.approx(359 + 40 + 8 + 4)


def test_the_mean_confidence_stands_only_where_all_give_one():
    frame = frames(12, 2, seed=2)["detection"]
    frame.loc[frame["judge_id"] == "judge-1", "confidence"] = NAN
    assert set(ensembles(frame, draws=2)["rule"]) == {"alone", "majority", "any flag"}
    assert "mean confidence" not in set(ensembles(frame.drop(columns="confidence"), draws=2)["rule"])


def test_one_judge_and_no_clean_twins():
    frame = frames(8, 1, seed=2)["detection"].query("truth == 0")
    table = ensembles(frame, draws=5)
    assert len(table) == 1
    assert np.isnan(table["false_alarm"].iloc[0])


def test_twelve_judges_make_every_pair_and_triple():
    """12 alone, 66 pairs and 220 triples under three rules."""
    assert len(ensembles(frames(3, 12, seed=2)["detection"].fillna({"confidence": 0.4}), draws=2)) == 12 + 3 * 286


# Early bias


@pytest.mark.parametrize("error, mean, best", [([-2, -1, 0, 0, 0], -1, 0), ([-3, -3, -2], -3, -3), ([], 0, 0)])
def test_shifts_by_hand(error, mean, best):
    assert mean_shift(np.array(error, dtype=float)) == mean
    assert best_shift(np.array(error, dtype=float)) == best


def early(error, n=40):
    return pd.DataFrame(
        {
            "judge_id": "j",
            "item_id": [f"i{k}" for k in range(n)],
            "chain_id": [f"c{k}" for k in range(n)],
            "kind": "perturbed",
            "n_steps": 20,
            "target": 10,
            "value": 10.0 + np.resize(error, n),
            "status": "ok",
        }
    )


def test_a_judge_that_is_always_two_early_is_mended():
    table = metrics.early_bias_correction(early([-2]), draws=50)
    assert (table["shift_a"] == -2).all()
    assert (table["mae_before"] == 2).all()
    assert (table["mae_after"] == 0).all()
    assert (table["exact_change"] == 1).all()


def test_shifting_by_the_mean_can_break_what_was_right():
    """Exact in three of four, 4 early in one: mean −1, so every exact pick is moved off; the median stays."""
    table = metrics.early_bias_correction(early([0, 0, 0, -4], 400), draws=50).set_index("method")
    assert table.loc["mean error", "shift_a"] == -1
    assert table.loc["mean error", "exact_after"] == 0
    assert table.loc["least MAE", "exact_after"] == 0.75
    assert table.loc["mean error", "mae_after"] == pytest.approx(0.75 * 1 + 0.25 * 3)


def test_picks_stay_inside_their_chain():
    frame = early([-9], 20).assign(n_steps=12, target=11, value=2.0)
    frame.loc[frame.index[0], "value"] = 11.0
    table = metrics.early_bias_correction(frame, draws=5).set_index("method")
    assert table.loc["mean error", "mae_after"] < 1.5


def test_nothing_detected_has_nothing_to_correct():
    frame = early([0], 6).assign(value=-1.0)
    table = metrics.early_bias_correction(frame, draws=5)
    assert (table["n"] == 0).all()
    assert table["mae_after"].isna().all()
