"""Reward tables worked by hand, and the same numbers through TRL's signature."""

from types import SimpleNamespace

import numpy as np
import pytest

from c2faith.cros import rewards
from c2faith.records import InputError


def test_shaped_rewards_fall_with_distance():
    # 1 - |v - 1| / 5 for v = 0 … 4, then the miss
    assert rewards.verdict_rewards(5, 1) == pytest.approx([0.8, 1.0, 0.8, 0.6, 0.4, -1.0])


def test_exact_only_pays_nothing_for_a_near_miss():
    assert rewards.verdict_rewards(3, 2, exact_only=True).tolist() == [-1, -1, 1, -1]


@pytest.mark.parametrize("exact_only", [False, True])
def test_clean_chain_pays_only_silence(exact_only):
    assert rewards.verdict_rewards(3, -1, exact_only=exact_only).tolist() == [-1, -1, -1, 1]


@pytest.mark.parametrize("n_steps", [1, 2, 7, 200])
def test_truth_is_the_only_best_verdict(n_steps):
    for target in range(-1, n_steps):
        table = rewards.verdict_rewards(n_steps, target)
        assert table.argmax() == target % (n_steps + 1)
        assert (table == 1).sum() == 1


@pytest.mark.parametrize(("n_steps", "target"), [(0, -1), (3, 3), (3, -2)])
def test_impossible_targets_are_refused(n_steps, target):
    with pytest.raises(InputError, match="no verdict"):
        rewards.verdict_rewards(n_steps, target)


def test_score_rewards_span_the_scale():
    assert rewards.score_rewards(4).tolist() == [-1, -0.5, 0, 0.5, 1]
    # a fractional reference is best served by its neighbours: |2 - 2.4| / 2 = 0.2 off the best
    assert rewards.score_rewards(2.4)[2] == pytest.approx(0.8)
    with pytest.raises(InputError, match="scale"):
        rewards.score_rewards(4.5)


COLUMNS = {
    "task": ["localization", "localization", "detection", "coverage"],
    "n_steps": [4, 4, 2, 3],
    "target": [1, -1, None, None],
    "truth": [None, None, 1, None],
    "reference": [None, None, None, 3.0],
}


def test_trl_rewards_look_verdicts_up_and_leave_other_tasks_out():
    replies = ['{"reasoning": "", "index": 2}', '{"reasoning": "", "index": -1}', '{"score": 0}', '{"score": 2}']
    assert rewards.localization_rewards(replies, **COLUMNS) == [0.75, 1.0, None, None]
    assert rewards.detection_rewards(replies, **COLUMNS) == [None, None, -1.0, None]
    assert rewards.coverage_rewards(replies, **COLUMNS) == [None, None, None, 0.5]


def test_a_reply_without_verdict_is_never_the_verdict_clean():
    replies = ["no idea", '{"index": null}', "", ""]
    # the second row's chain is clean: read as -1, the null would have earned +1
    assert rewards.localization_rewards(replies, **COLUMNS) == [-1.0, -1.0, None, None]


def test_trl_rewards_take_conversations_and_ignore_other_columns():
    chat = [[{"role": "assistant", "content": '{"reasoning": "", "index": 1}'}]]
    columns = {"task": ["localization"], "n_steps": [4], "target": [1], "prompts": ["?"], "trainer_state": None}
    assert rewards.localization_rewards(chat, **columns) == [1.0]


class HalfDoubtful:
    """Doubts each step by a half; reads three steps at most; every chain covers 2 of 4."""

    def read(self, chains):
        return [SimpleNamespace(hazards=np.full(min(len(steps), 3), 0.5), coverage=2.0) for _, steps in chains]


def test_chain_reward_is_log_survival_plus_coverage_plus_answer():
    reward = rewards.chain_reward(HalfDoubtful(), coverage_weight=0.5, answer_weight=1.0)
    earned = reward(["1 + 1 = 2.\n\nSo 2.", "So 3.", "", "a\n\nb\n\nc\n\nd"], question=["?"] * 4, answer=["2"] * 4)
    # log(1/2) + 0.5 · 2/4 = -0.4431, +1 for the answer; the empty and the unreadably long one have no reward
    assert earned == [pytest.approx(1 + 0.25 - np.log(2)), pytest.approx(0.25 - np.log(2)), None, None]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"so \boxed{\frac{1}{2}} holds", r"\frac{1}{2}"),
        ("x\n\n# Answer\n\n12", "12"),
        ("it is 3/4.", "3/4"),
        ("?", None),
    ],
)
def test_final_answer(text, answer):
    assert rewards.final_answer(text) == answer
