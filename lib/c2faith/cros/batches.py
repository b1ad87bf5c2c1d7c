"""Examples as padded tensors, with the reward of every verdict beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from c2faith.cros.examples import Example
from c2faith.cros.rewards import WORST, score_rewards, verdict_rewards
from c2faith.records import rng


@dataclass(frozen=True)
class Batch:
    """Padded chains with the rewards of their verdicts.

    Attributes
    ----------
    inputs : Any
        What the module reads; for a head on cached features, Tensor (batch, n_steps, n_features).
    mask : Tensor of bool, shape (batch, n_steps)
        True where there is a step that was seen.
    rewards : Tensor, shape (batch, n_steps + 1)
        Of every localization verdict, the last column of −1; 0 where there is no verdict.
    truth : Tensor of int, shape (batch,)
        The right verdict's column, −1 (the last) for a clean chain.
    weight : Tensor, shape (batch,)
        What each chain counts in localization; 0 where localization is not asked.
    missing : Tensor, shape (batch, n_steps)
        Steps removed before each step.
    score_rewards : Tensor, shape (batch, 5)
        Of every coverage score.
    gap_weight : Tensor, shape (batch,)
        What each chain counts in coverage; 0 where the missing steps were not counted.
    """

    inputs: Any
    mask: Tensor
    rewards: Tensor
    truth: Tensor
    weight: Tensor
    missing: Tensor
    score_rewards: Tensor
    gap_weight: Tensor

    def select(self, indices: Sequence[int]) -> Batch:
        """The rows with these indices, padded no further than they need."""
        rows = torch.as_tensor(indices)
        longest = int(self.mask[rows].sum(-1).max())
        padded = {name: getattr(self, name)[:, :longest][rows] for name in ("inputs", "mask", "missing")}
        rewards = torch.cat([self.rewards[:, :longest], self.rewards[:, -1:]], -1)[rows]
        others = ("truth", "weight", "score_rewards", "gap_weight")
        return Batch(**padded, rewards=rewards, **{name: getattr(self, name)[rows] for name in others})

    def to(self, device: torch.device) -> Batch:
        """The same on another device; inputs that are no tensor stay as they are."""
        kept = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return Batch(
            **{name: value.to(device) if isinstance(value, Tensor) else value for name, value in kept.items()}
        )


def stack(chains: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Chains of features, each (n_steps, n_features), padded to one tensor, and the mask of their steps."""
    longest = max(len(chain) for chain in chains)
    padded = chains[0].new_zeros(len(chains), longest, chains[0].shape[-1])
    mask = torch.zeros(len(chains), longest, dtype=torch.bool, device=padded.device)
    for row, chain in enumerate(chains):
        padded[row, : len(chain)] = chain
        mask[row, : len(chain)] = True
    return padded, mask


def usable(example: Example, n_seen: int) -> bool:
    """Whether an example read up to `n_seen` steps says something: an unseen step is never called clean."""
    whole = n_seen == len(example.steps)
    return whole or (example.target is not None and 0 <= example.target < n_seen)


def batch_of(
    examples: Sequence[Example],
    chains: Sequence[Tensor],
    *,
    exact_only: bool = False,
    random_seed: int | None = None,
) -> Batch:
    """All examples in one batch; the features of each are what was seen of it.

    Groups weigh the same, and so do faulty and clean chains within a group; a chain weighs 1 on average.

    Parameters
    ----------
    examples, chains
        Usable examples and their features, each (n_seen, n_features).
    exact_only : bool
        Reward nothing but the right verdict.
    random_seed : int, optional
        Reward every verdict at random instead, uniformly in [−1, 1]: a control that has nothing to teach.
    """
    inputs, mask = stack(chains)
    n, longest = mask.shape
    rewards, truth = torch.zeros(n, longest + 1), torch.zeros(n, dtype=torch.long)
    missing, scores = torch.zeros(n, longest), torch.zeros(n, 5)
    located, counted = torch.zeros(n), torch.zeros(n)
    kinds = Counter((e.group, e.target >= 0) for e in examples if e.target is not None)
    groups = {group for group, _ in kinds}
    located_rows = sum(kinds.values())
    for row, (example, chain) in enumerate(zip(examples, chains, strict=True)):
        seen = len(chain)
        if example.target is not None:
            table = verdict_rewards(len(example.steps), example.target, exact_only=exact_only)
            if random_seed is not None:
                table = rng(random_seed, "random reward", example.item_id).uniform(WORST, 1, len(table))
            rewards[row, :seen], rewards[row, -1] = torch.tensor(table[:seen]), table[-1]
            truth[row] = example.target
            classes = sum(group == example.group for group, _ in kinds)
            located[row] = located_rows / len(groups) / classes / kinds[example.group, example.target >= 0]
        if example.missing is not None and seen == len(example.steps):
            missing[row, :seen] = torch.tensor(example.missing)
            table = score_rewards(4 * seen / (seen + sum(example.missing)))
            if random_seed is not None:
                table = rng(random_seed, "random score", example.item_id).uniform(WORST, 1, len(table))
            scores[row], counted[row] = torch.tensor(table), 1.0
    return Batch(inputs, mask, rewards, truth, located, missing, scores, counted)
