"""Tuning the encoder with the head, on a tiny model: it starts where the frozen judge stands, and resumes."""

import pytest
import torch

import tiny_encoder
from c2faith.cros import tuning
from c2faith.cros.examples import Example
from c2faith.cros.heads import Projection, StepHead, TrainedHead
from c2faith.cros.reading import Encoder, FeatureStore
from c2faith.cros.train import Recipe
from c2faith.records import InputError

pytestmark = pytest.mark.slow
RECIPE = Recipe("exact", updates=10, learning_rate=5e-3, batch_size=4)


def example(number, target):
    steps = tuple("no" if i == target else f"{i + number}" for i in range(3))
    return Example(f"{number}{target}", f"{number}", f"{number}", "injected", f"{number}?", steps, target)


EXAMPLES = [example(number, target) for number in range(4) for target in (number % 3, -1)]


@pytest.fixture
def frozen(tmp_path):
    encoder = Encoder(tiny_encoder.save(tmp_path / "model"), layers=(1.0,))
    features = FeatureStore(tmp_path / "features", encoder).get([e.written for e in EXAMPLES])
    projection = Projection.fit(features, 8)
    torch.manual_seed(0)
    return encoder, TrainedHead(projection, StepHead(projection.n_features, 4, dropout=0.0)), features


def test_it_reads_at_first_as_the_frozen_judge_did(frozen):
    encoder, judge, features = frozen
    hazard, _ = tuning.ReadingHead(encoder, judge)(EXAMPLES)
    for row, reading in zip(hazard.sigmoid(), judge.read(features), strict=True):
        torch.testing.assert_close(row, torch.tensor(reading.hazards), atol=5e-3, rtol=0)


@pytest.mark.parametrize("mode", ["lora", "full"])
def test_tuning_raises_the_reward_and_leaves_what_a_judge_needs(frozen, tmp_path, mode):
    encoder, judge, _ = frozen
    tuned, run = tuning.tune(
        encoder, judge, EXAMPLES, EXAMPLES, recipe=RECIPE, folder=tmp_path / "tuned", mode=mode
    )
    assert run.best > run.log[0]["reward"]
    if mode == "lora":
        again = Encoder(str(tmp_path / "model"), layers=(1.0,), adapter=str(tmp_path / "tuned" / "adapter"))
        assert again.key != Encoder(str(tmp_path / "model"), layers=(1.0,)).key
    else:
        again = Encoder(str(tmp_path / "tuned" / "model"), layers=(1.0,))
    expected, _ = tuning.ReadingHead(encoder, tuned)(EXAMPLES)
    found, _ = tuning.ReadingHead(again, tuned)(EXAMPLES)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_an_unknown_way_of_tuning_is_refused(frozen, tmp_path):
    with pytest.raises(InputError, match="choose frozen, lora or full"):
        tuning.tune(*frozen[:2], EXAMPLES, EXAMPLES, recipe=RECIPE, folder=tmp_path, mode="some")
