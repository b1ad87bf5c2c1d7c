"""The blind reader of single steps."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from c2faith.analysis.words import giveaway, pieces, suspicion

pytestmark = pytest.mark.filterwarnings("error")


def items(original, perturbed):
    n = len(original)
    return pd.DataFrame(
        {
            "item_id": [f"i{k}" for k in range(n)],
            "chain_id": [f"c{k}" for k in range(n)],
            "original_step": original,
            "perturbed_step": perturbed,
            "edit_type": "other",
        }
    )


def test_pieces_keep_commands_and_the_length_of_numbers():
    assert pieces(r"\frac{10}{2}") == {
        r"\frac",
        "{",
        "00",
        "}",
        "0",
        r"\frac {",
        "{ 00",
        "00 }",
        "} {",
        "{ 0",
        "0 }",
    }


def test_a_word_of_the_negator_gives_every_step_away():
    told = giveaway(items([f"so x is {k}" for k in range(40)], [f"so x is not {k}" for k in range(40)]), draws=50)
    assert told["pair_accuracy"].to_list() == [1, 1]
    assert told["edit_type"].to_list() == ["all", "other"]


def test_swapped_steps_cannot_be_told_apart():
    """Every step is an original in one chain and a negation in another, so its surface says nothing."""
    steps = [f"so x is {'abcdefgh'[k % 8]}" for k in range(80)]
    draw = np.random.default_rng(0)
    told = giveaway(items(steps, list(draw.permutation(steps))), draws=50).iloc[0]
    assert 0.3 < told["pair_accuracy"] < 0.7
    assert 0.3 < told["auroc"] < 0.7


def test_auroc_agrees_with_scikit_learn():
    draw = np.random.default_rng(1)
    words = np.array(["add", "cancel", "let", "sum", "so"])
    made = items(*([" ".join(draw.choice(words[at:], 3)) for _ in range(60)] for at in (0, 1)))
    scores = suspicion(made)
    values = np.concatenate([scores["original"], scores["perturbed"]])
    expected = roc_auc_score([0] * 60 + [1] * 60, values)
    assert giveaway(made, draws=5)["auroc"].iloc[0] == pytest.approx(expected)


def test_a_chain_is_scored_by_what_others_teach():
    """With one chain there is nothing to learn from: both scores are 0, and a tie counts one half."""
    scores = suspicion(items(["x"], ["not x"]))
    assert scores[["original", "perturbed"]].to_numpy().tolist() == [[0, 0]]
    assert giveaway(items(["x"], ["not x"]), draws=5)["pair_accuracy"].iloc[0] == 0.5
