"""Words that mark correct detections and false acceptances."""

import math

import numpy as np
import pandas as pd
import pytest

from c2faith.analysis.words import appendix_f, log_odds, phrases, tokens

pytestmark = pytest.mark.filterwarnings("error")


def test_tokens_are_words_and_commands():
    found = tokens(r"Let's cancel 2's: \frac{1}{x} IS $\sqrt{y}$.")
    assert found == ["let's", "cancel", "s", r"\frac", "x", "is", r"\sqrt", "y"]


def test_phrases_are_runs_of_tokens():
    assert phrases("does not follow", 2) == ["does", "not", "follow", "does not", "not follow"]
    assert phrases("") == []


def test_log_odds_by_hand():
    """First: a a a b (n = 4), second: a b b b (n = 4), prior 2 in all: α = 2 · 4/8 = 1 for each word.

    a: log(4 / (4 + 2 − 4)) − log(2 / (4 + 2 − 2)) = log 2 − log ½ = 2 log 2; variance 1/4 + 1/2.
    """
    table = log_odds(["a a", "a b"], ["a b b b"], longest=1, fewest=1, prior=2).set_index("word")
    assert table.loc["a", "log_odds"] == pytest.approx(2 * math.log(2))
    assert table.loc["a", "z"] == pytest.approx(2 * math.log(2) / math.sqrt(0.75))
    assert table.loc["b", "z"] == pytest.approx(-table.loc["a", "z"])
    assert table.loc["a", ["count_first", "count_second"]].to_list() == [3, 1]


def test_changing_sides_changes_the_sign():
    one, other = ["so x follows", "it follows"], ["x does not follow", "it does not"]
    a = log_odds(one, other, fewest=1).set_index("word")["z"]
    b = log_odds(other, one, fewest=1).set_index("word")["z"]
    assert a.to_dict() == pytest.approx((-b).to_dict())


def test_equal_texts_have_no_marked_words():
    table = log_odds(["a b c"] * 9, ["a b c"] * 9, fewest=1)
    assert np.allclose(table["z"], 0)
    assert (table["p_holm"] == 1).all()


def test_a_larger_prior_shrinks():
    def z(prior):
        return log_odds(["a a a b"], ["b b b a"], longest=1, fewest=1, prior=prior).set_index("word").loc["a", "z"]

    assert z(1) > z(100) > z(10_000) > 0


def test_rare_phrases_and_empty_sides_are_left_out():
    assert log_odds(["a b"], ["b"], fewest=3).empty
    assert log_odds([], ["b b b b b b"]).empty
    assert log_odds(["", " 12 + 3 "], ["b b b b b b"]).empty


def test_appendix_f_counts_answered_perturbed_steps_only():
    n = 20
    frame = pd.DataFrame(
        {
            "judge_id": "j",
            "item_id": [f"i{k}" for k in range(3 * n)],
            "truth": [0] * 2 * n + [1] * n,
            "value": [0.0] * n + [1.0] * n + [0.0] * n,
            "reasoning": ["it does not follow"] * n + ["a valid next step"] * n + ["does not follow, clean"] * n,
        }
    )
    frame.loc[0, "value"] = np.nan
    items = pd.DataFrame({"item_id": frame["item_id"], "perturbed_step": "cancel it"})
    table = appendix_f(frame, items, top=5)
    marked = table[table["over"] == "correct detections"].set_index("word")
    assert set(table["where"]) == {"reasoning"}  # the steps are all alike
    assert marked.loc["does not follow", ["count_correct", "count_wrong"]].to_list() == [n - 1, 0]
    assert "clean" not in set(table["word"])
    assert "valid next step" in set(table.loc[table["over"] == "false acceptances", "word"])


def test_a_judge_without_reasoning_has_no_words_of_reasoning():
    frame = pd.DataFrame(
        {"judge_id": "j", "item_id": ["a", "b"], "truth": 0, "value": [0.0, 1.0], "reasoning": [None, ""]}
    )
    items = pd.DataFrame({"item_id": ["a", "b"], "perturbed_step": ["x", "y"]})
    table = appendix_f(frame, items)
    assert table.empty
    assert "word" in table.columns
