"""The whole comparison on a made-up benchmark with planted features, and its summaries by hand."""

import numpy as np
import pandas as pd
import pytest
import torch

from c2faith import dataset
from c2faith.analysis import metrics
from c2faith.cros import summaries
from c2faith.cros.examples import benchmark_examples, missing_before, more_examples
from c2faith.cros.experiment import ALL, Settings, compare, learning_curve
from c2faith.cros.reading import SCALARS, StepFeatures
from c2faith.cros.train import Recipe
from c2faith.records import CoverageItem, rng

SETTINGS = Settings(
    components=4,
    hidden=8,
    dropout=0.0,
    warm=Recipe("warm", updates=60, learning_rate=1e-2, batch_size=128),
    tuned=Recipe("exact", updates=20, learning_rate=3e-3, batch_size=128),
)


@pytest.fixture(scope="module")
def made_up():
    """A synthetic benchmark; a broken step is marked in its states, a step after a gap in its scalars."""
    built = dataset.build("synthetic", limit=45)
    examples = benchmark_examples(built) + more_examples(built.chains, [1], "injected")
    originals = {chain.question: chain.steps for chain in built.chains}
    features = {}
    for example in examples:
        draw = rng(0, example.question, *example.steps)
        n_steps, known = len(example.steps), originals[example.question]
        states, scalars = draw.normal(size=(n_steps, 1, 1, 8)), draw.normal(size=(n_steps, len(SCALARS)))
        for i, step in enumerate(example.steps):
            if step not in known:
                states[i] += 3
            elif i and example.steps[i - 1] in known:
                scalars[i, -1] += 4 * (known.index(step) - known.index(example.steps[i - 1]) - 1)
        features[example.written] = StepFeatures(
            torch.tensor(states).half(), torch.tensor(scalars).float(), n_steps
        )
    return built, examples, features


@pytest.fixture(scope="module")
def found(made_up):
    return compare(*made_up[1:], settings=SETTINGS, folds=3, seeds=(0, 1))


def test_every_test_item_is_judged_once_a_seed(made_up, found):
    built = made_up[0]
    frame = found.frames["localization"]
    assert set(frame["judge_id"]) == set(ALL)
    for _, rows in frame.groupby(["judge_id", "seed"]):
        assert len(rows) == rows["item_id"].nunique() == 2 * len(built.causality)
    assert len(found.frames["coverage"]) == len(built.coverage) * len(ALL) * 2


def test_what_was_planted_is_found_and_chance_is_chance(found):
    table = metrics.localization(found.frames["localization"], draws=200).set_index("judge_id")["processbench_f1"]
    assert table["exact"] > 0.7
    assert table["warm"] > 0.7
    assert table["chance"] < 0.3
    assert table["surprisal"] < 0.6
    detected = metrics.detection(found.frames["detection"], draws=200).set_index("judge_id")["auroc"]
    assert detected["exact"] > 0.95
    assert abs(detected["chance"] - 0.5) < 1e-9


def test_missing_steps_are_counted_by_who_learned_to(found):
    table = metrics.coverage(found.frames["coverage"], draws=50)
    error = table.groupby("judge_id")["mae"].mean()
    assert error["warm"] < error["untrained"]
    assert error["warm"] < error["surprisal"]  # which never misses a step


def test_step_auroc_of_planted_and_of_untaught_hazards(found):
    table = summaries.step_auroc(found.steps, draws=50).set_index("judge_id")["auroc"]
    assert table["exact"] > 0.95
    assert 0.2 < table["surprisal"] < 0.8


def test_step_auroc_by_hand():
    steps = pd.DataFrame(
        {
            "judge_id": "a",
            "kind": "injected",
            "chain_id": list("ppqq"),
            "hazard": [0.1, 0.8, 0.8, 0.3],
            "faulty": [False, True, False, False],
        }
    )
    # 0.8 beats 0.1 and 0.3 and ties with 0.8: (1 + 1 + 1/2) / 3
    assert summaries.step_auroc(steps, draws=10)["auroc"].item() == pytest.approx(2.5 / 3)


def test_more_problems_teach_more(made_up):
    curve = learning_curve(
        *made_up[1:], shares=[0.1, 1.0], settings=SETTINGS, folds=3, rotations=[0], seeds=(0,), judges=("warm",)
    )
    assert curve["share"].tolist() == [0.1, 1.0]
    assert curve["processbench_f1"].iloc[0] < curve["processbench_f1"].iloc[1]


def test_processes_change_nothing(made_up):
    options = {"settings": SETTINGS, "folds": 3, "rotations": [0, 1], "seeds": (0,), "judges": ("warm",)}
    alone, together = (compare(*made_up[1:], **options, workers=n) for n in (1, 2))
    for task, frame in alone.frames.items():
        pd.testing.assert_frame_equal(frame, together.frames[task])
    assert alone.heads.keys() == together.heads.keys()


def test_pairs_count_the_chains_that_only_one_judge_gets_right(found):
    (row,) = summaries.pairs(found, ["exact", "chance"]).to_dict("records")
    outcomes = summaries.right(found.frames["localization"])
    assert row["only_a"] == (outcomes["exact"] & ~outcomes["chance"]).sum() > 10
    assert row["only_b"] == (outcomes["chance"] & ~outcomes["exact"]).sum()
    assert row["n"] == len(outcomes) and row["p_exact"] == row["p_holm"] < 0.001


def test_share_needed_is_interpolated():
    curve = pd.DataFrame(
        {
            "judge_id": list("aabb"),
            "share": [0.5, 1.0, 0.5, 1.0],
            "processbench_f1": [0.2, 0.6, 0.1, 0.3],
        }
    )
    needed = summaries.share_needed(curve, 0.4)
    assert needed["a"] == pytest.approx(0.75)
    assert np.isnan(needed["b"])


def test_paired_outcomes_follow_most_seeds():
    frame = pd.DataFrame(
        {
            "judge_id": "a",
            "item_id": ["i~seed0", "i~seed1", "i~seed2", "k~seed0", "k~seed1", "k~seed2"],
            "value": [1.0, 1.0, np.nan, -1.0, 2.0, 2.0],
            "target": [1, 1, 1, -1, -1, -1],
        }
    )
    assert summaries.right(frame)["a"].to_dict() == {"i": True, "k": False}


def test_missing_steps_are_laid_before_the_step_that_follows_them():
    row = CoverageItem("i", "c", 0.5, ("a", "d", "f"), (1, 2, 4), 1.0, 0.5)
    assert missing_before(row) == (0, 2, 1)
