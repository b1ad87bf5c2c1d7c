"""GRPO's prompts on a small benchmark, and TRL really training on them with a tiny model."""

import pytest

import tiny_encoder
from c2faith import dataset
from c2faith.cros import grpo
from c2faith.cros.rewards import TRL_REWARDS, chain_reward
from c2faith.records import InputError


@pytest.fixture(scope="module")
def small():
    return dataset.build("synthetic", limit=6)


def questions(small):
    return {chain.question for chain in small.chains}


def test_half_of_the_prompts_are_clean_and_none_holds_its_answer(small):
    rows = grpo.prompts(small, questions(small), ("detection", "localization"))
    truths = [row["truth"] for row in rows if row["task"] == "detection"]
    targets = [row["target"] >= 0 for row in rows if row["task"] == "localization"]
    assert 2 * sum(truths) == len(truths) > 0
    assert 2 * sum(targets) == len(targets) > 0
    assert {row["reference"] for row in rows} == {None}
    assert all([m["role"] for m in row["prompt"]] == ["system", "user"] for row in rows)


def test_coverage_prompts_carry_the_share_of_steps_kept(small):
    rows = grpo.prompts(small, questions(small), ("coverage",))
    assert len(rows) == 5 * len(small.chains)
    assert sum(row["reference"] == 4 for row in rows) == len(small.chains)
    assert all(row["target"] is None and row["truth"] is None for row in rows)


def test_the_order_is_seeded_and_other_problems_stay_out(small):
    one = {small.chains[0].question}
    rows = grpo.prompts(small, one)
    assert rows == grpo.prompts(small, one)
    assert rows != grpo.prompts(small, one, seed=1)
    assert all(small.chains[0].question[:20] in row["prompt"][1]["content"] for row in rows)
    with pytest.raises(InputError, match=r"no prompt is left|half of the prompts"):
        grpo.prompts(small, {"another problem"})


def test_every_prompt_is_rewarded_by_one_function_and_left_out_by_the_others(small):
    rows = grpo.prompts(small, questions(small))
    columns = {name: [row[name] for row in rows] for name in ("task", "n_steps", "truth", "target", "reference")}
    replies = [[{"role": "assistant", "content": '{"reasoning": "", "score": 1, "index": 0}'}]] * len(rows)
    earned = [reward(replies, **columns) for reward in TRL_REWARDS]
    for several in zip(*earned, strict=True):
        assert sum(value is not None for value in several) == 1


@pytest.mark.parametrize(
    ("broken", "message"), [({"chat": False}, "no chat template"), ({"eos": False}, "end-of-text")]
)
def test_a_model_that_cannot_write_a_reply_is_refused(small, tmp_path, broken, message):
    folder = tiny_encoder.save(tmp_path / "model", **broken)
    with pytest.raises(InputError, match=message):
        grpo.train_grpo(folder, grpo.prompts(small, questions(small)), tmp_path / "trained", updates=1)


@pytest.mark.slow
def test_trl_trains_a_tiny_judge_and_goes_on_where_it_stopped(small, tmp_path):
    folder = tiny_encoder.save(tmp_path / "model", context=8192)
    rows = grpo.prompts(small, questions(small), ("localization",))
    options = {"generations": 2, "prompts_per_update": 2, "max_completion_tokens": 8}
    log = grpo.train_grpo(folder, rows, tmp_path / "trained", updates=2, **options)
    assert [row["reward"] for row in log] == [-1.0, -1.0]  # noise is no verdict
    assert (tmp_path / "trained" / "model" / "model.safetensors").exists()
    log = grpo.train_grpo(folder, rows, tmp_path / "trained", updates=3, **options)
    assert len(log) == 3


@pytest.mark.slow
def test_a_reasoner_is_trained_with_a_judge_as_its_reward(small, tmp_path):
    import numpy as np
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    class Doubter:
        def read(self, chains):
            asked.extend(chains)
            return [
                type("Reading", (), {"hazards": np.full(len(steps), 0.5), "coverage": 4.0}) for _, steps in chains
            ]

    asked = []
    rows = [{"prompt": chain.question, "question": chain.question} for chain in small.chains]
    settings = GRPOConfig(
        output_dir=str(tmp_path / "reasoner"),
        max_steps=1,
        num_generations=2,
        per_device_train_batch_size=4,
        max_completion_length=8,
        use_cpu=True,
        report_to="none",
    )
    trainer = GRPOTrainer(
        tiny_encoder.save(tmp_path / "model", context=8192),
        chain_reward(Doubter()),
        args=settings,
        train_dataset=Dataset.from_list(rows),
    )
    trainer.train()
    assert {question for question, _ in asked} <= questions(small)
    # log(1/2) + 0.5 · 4/4, the same for every chain that has a step
    assert trainer.state.log_history[0]["reward"] == pytest.approx(0.5 - np.log(2), abs=1e-3)
