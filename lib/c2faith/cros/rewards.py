"""What every verdict earns, from the benchmark's exact labels alone: no learned reward, no language model.

The tables (`verdict_rewards`, `follow_rewards`, `score_rewards`) value *all* admissible verdicts of an item,
which makes the policy gradient exact. The functions in TRL's signature value sampled JSON replies by looking
the parsed verdict up in the same tables. `chain_reward` turns a trained judge into a reward for reasoners.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from c2faith.judging.verdicts import parse
from c2faith.records import InputError

WORST = -1.0  # a missed error, a false alarm, a reply that is no verdict

Completion = str | Sequence[dict[str, str]]
RewardFunction = Callable[..., list[float | None]]  # in TRL's signature: None where a row has no reward


def verdict_rewards(n_steps: int, target: int, *, exact_only: bool = False) -> np.ndarray:
    """Reward of every localization verdict; the last entry is the verdict −1, "no inconsistency".

    On a faulty chain verdict v earns 1 − |v − target| / n_steps and the miss −1 earns −1; on a clean chain
    (target −1) the verdict −1 earns +1 and everything else −1. With `exact_only` a near miss earns −1 as well.

    Parameters
    ----------
    target : int
        0-based index of the first step that does not follow, −1 for a clean chain.

    Returns
    -------
    ndarray, shape (n_steps + 1,)
        Values in [−1, 1]; their shape follows the process reward of FAPO's verifier (arXiv:2510.22543).

    >>> verdict_rewards(4, 1).tolist()
    [0.75, 1.0, 0.75, 0.5, -1.0]
    >>> verdict_rewards(2, -1).tolist()
    [-1.0, -1.0, 1.0]
    """
    if n_steps < 1 or not -1 <= target < n_steps:
        raise InputError(f"target {target} is no verdict on a chain of {n_steps} steps: give -1 … {n_steps - 1}")
    rewards = np.full(n_steps + 1, WORST)
    if target >= 0 and not exact_only:
        rewards[:-1] = 1 - np.abs(np.arange(n_steps) - target) / n_steps
    rewards[target] = 1.0  # target −1 is the last entry
    return rewards


def follow_rewards(follows: int) -> np.ndarray:
    """Reward of the detection scores 0 (does not follow) and 1 (follows): +1 for the true one, else −1.

    >>> follow_rewards(0).tolist()
    [1.0, -1.0]
    """
    rewards = np.full(2, WORST)
    rewards[follows] = 1.0
    return rewards


def score_rewards(reference: float) -> np.ndarray:
    """Reward of the coverage scores 0 … 4 against an exact reference in [0, 4]: 1 − |score − reference| / 2.

    The range is [−1, 1], as for the other tasks. Only label-free references (`retention`, `annotated`) are
    exact; a language model's reference is an opinion and earns nothing here.

    >>> score_rewards(3).tolist()
    [-0.5, 0.0, 0.5, 1.0, 0.5]
    """
    if not 0 <= reference <= 4:
        raise InputError(f"coverage reference {reference} is not on the scale: give a number from 0 to 4")
    return 1 - np.abs(np.arange(5) - reference) / 2


def _text(completion: Completion) -> str:
    """A completion's text in either of TRL's formats: plain, or a list of messages."""
    return completion if isinstance(completion, str) else (completion[-1].get("content") or "")


def _trl_reward(task: str, label: str, table: Callable[[int, Any], np.ndarray]) -> RewardFunction:
    """A task's reward in TRL's signature: what the parsed verdict earns in the table of the row's label.

    None for a row of another task. A reply that is no verdict earns −1: it is never read as "no inconsistency".
    """

    def reward(completions: Sequence[Completion], **columns: Any) -> list[float | None]:
        rewards: list[float | None] = []
        rows = zip(completions, columns["task"], columns["n_steps"], columns[label], strict=True)
        for completion, asked, n_steps, known in rows:
            value = parse(_text(completion), task, n_steps).value if asked == task else None
            # The verdict −1 is the last entry of its table, which is what Python's index −1 says.
            earned = WORST if value is None else float(table(n_steps, known)[value])
            rewards.append(earned if asked == task else None)
        return rewards

    reward.__name__ = reward.__qualname__ = f"{task}_rewards"  # under which TRL logs it
    return reward


detection_rewards = _trl_reward("detection", "truth", lambda _, truth: follow_rewards(truth))
localization_rewards = _trl_reward("localization", "target", verdict_rewards)
coverage_rewards = _trl_reward("coverage", "reference", lambda _, reference: score_rewards(reference))
TRL_REWARDS = (detection_rewards, localization_rewards, coverage_rewards)


def split_steps(text: str) -> list[str]:
    """Steps of a written solution: its paragraphs, or its lines where it is one paragraph.

    >>> split_steps("2 + 2 = 4.\\n\\nSo x = 4.")
    ['2 + 2 = 4.', 'So x = 4.']
    """
    paragraphs = re.split(r"\n\s*\n", text.strip())
    pieces = paragraphs if len(paragraphs) > 1 else text.splitlines()
    return [piece.strip() for piece in pieces if piece.strip()]


def final_answer(text: str) -> str | None:
    """The answer a solution ends with: the last ``\\boxed{}``, "# Answer" section or number; None if none.

    >>> final_answer("So the sum is 1,012.")
    '1012'
    """
    boxed = re.findall(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}", text)
    marked = re.findall(r"#\s*Answer\s*\n+(.+?)\s*(?:\n|$)", text)
    numbers = re.findall(r"-?\d+(?:\.\d+)?(?:/\d+)?", text.replace(",", ""))
    found = boxed or marked or numbers
    return found[-1].strip() if found else None


def chain_reward(judge: Any, *, coverage_weight: float = 0.5, answer_weight: float = 0.0) -> RewardFunction:
    """A reward function for training a reasoner: how well do the steps of its chain hold together?

    The reward of a generated chain is its mean log-survival (the mean of log(1 − hazard) over the steps, in
    (−∞, 0]) plus `coverage_weight` × coverage / 4, plus `answer_weight` where the final answer is the one of
    the column `answer`. A chain the judge cannot read to its end, or one without a step, gets None: unseen
    steps are never rewarded as clean.

    `judge` reads (question, steps) as `c2faith.cros.judge.CrosJudge` does. What comes back is for
    ``GRPOTrainer(reward_funcs=...)``; `question` and `answer` are columns of the training set.
    """

    def cros_chain_reward(
        completions: Sequence[Completion],
        *,
        question: Sequence[str],
        answer: Sequence[str | None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        texts = [_text(completion) for completion in completions]
        chains = [split_steps(text) for text in texts]
        answers = answer if answer is not None else [None] * len(texts)
        readable = [i for i, steps in enumerate(chains) if steps]
        readings = judge.read([(question[i], chains[i]) for i in readable])
        rewards: list[float | None] = [None] * len(texts)
        for i, reading in zip(readable, readings, strict=True):
            if len(reading.hazards) < len(chains[i]):
                continue
            survival = float(np.mean(np.log1p(-np.minimum(reading.hazards, 1 - 1e-6))))
            right = answers[i] is not None and _same_answer(final_answer(texts[i]), answers[i])
            rewards[i] = survival + coverage_weight * reading.coverage / 4 + answer_weight * right
        return rewards

    return cros_chain_reward


def _same_answer(found: str | None, wanted: str) -> bool:
    if found is None:
        return False
    try:
        return math.isclose(float(found), float(wanted.replace(",", "")), rel_tol=1e-9)
    except ValueError:
        return "".join(found.split()) == "".join(wanted.split())
