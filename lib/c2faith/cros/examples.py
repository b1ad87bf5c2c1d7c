"""What a judge learns from and is tested on: written solutions with exact labels, split by problem, as tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from c2faith.cros.reading import Written
from c2faith.cros.rewards import WORST, score_rewards, verdict_rewards
from c2faith.dataset import Dataset, negate, perturb
from c2faith.dataset.chains import load_chains
from c2faith.judging import tasks
from c2faith.judging.tasks import Item
from c2faith.records import Chain, CoverageItem, InputError, rng, sha256


@dataclass(frozen=True, slots=True)
class Example:
    """A written solution and what is known about it."""

    item_id: str
    chain_id: str
    problem_id: str
    # injected (a perturbed chain or its clean twin), natural, synthetic, coverage (steps were removed), or
    # detection (a chain cut off after the step in question)
    group: str
    question: str
    steps: tuple[str, ...]
    target: int | None  # the first step that does not follow, −1 for none; None where that is not the question
    missing: tuple[int, ...] | None = None  # steps removed before each step; None where nobody counted them
    item: Item | None = None  # the benchmark's item, if it is one: these alone are tested on

    @property
    def written(self) -> Written:
        return self.question, self.steps

    @property
    def coverage(self) -> float | None:
        """The coverage reference `retention`, 4·n / (n + missing); None where nobody counted."""
        n = len(self.steps)
        return None if self.missing is None else 4 * n / (n + sum(self.missing))


def fold_of(question: str, folds: int, seed: int = 0) -> int:
    """The fold of a problem, from its text alone: anyone who sees the problem can tell which it is.

    >>> fold_of("What is 2 + 2?", 5) == fold_of(" What is  2 + 2? ", 5)
    True
    """
    return int(sha256(f"{seed}\0{' '.join(question.split())}")[:15], 16) % folds


def missing_before(row: CoverageItem | Item) -> tuple[int, ...]:
    """How many original steps are missing just before each kept one.

    Removals lie in the middle region, which never reaches the last step, so that none is lost at the end.

    >>> missing_before(CoverageItem("", "", 0.5, ("a", "d", "e"), (1, 2), 1.0, 0.4))
    (0, 2, 0)
    """
    kept = [i for i in range(len(row.steps) + len(row.removed)) if i not in row.removed]
    return tuple(index - previous - 1 for previous, index in zip([-1, *kept], kept, strict=False))


def benchmark_examples(dataset: Dataset) -> list[Example]:
    """Every item of the three tasks, with its labels."""
    examples = []
    for item in (item for task in ("detection", "localization", "coverage") for item in tasks.items(dataset, task)):
        group, target, missing = item.task, None, None
        if group == "coverage":
            missing = missing_before(item)
        elif group == "localization":
            group, target = "natural" if item.kind == "natural" else "injected", int(item.labels["target"])
            missing = (0,) * len(item.steps) if item.kind == "clean" else None
        else:
            target = -1 if item.labels["truth"] else int(item.labels["target"])
        of = (item.item_id, item.chain_id, item.problem_id, group, item.question, item.steps)
        examples.append(Example(*of, target, missing, item))
    return examples


def more_examples(
    chains: Sequence[Chain], seeds: Iterable[int], group: str, dropped: Counter[str] | None = None
) -> list[Example]:
    """Further negations to train on, one a chain and seed, of any step; with ``synthetic`` also the clean chains.

    Each chain is cut off after its negated step: what a causal model makes of the steps up to there is the same
    with and without the rest, which would take most of the reading. The same negation drawn twice counts once.
    """

    def example(chain: Chain, name: str, steps: tuple[str, ...], target: int) -> Example:
        missing = (0,) * len(steps) if target < 0 else None
        return Example(name, chain.chain_id, chain.problem_id, group, chain.question, steps, target, missing)

    negator, examples = negate.make("rules", chains=chains), {}
    for chain in chains if group == "synthetic" else ():
        examples[chain.chain_id] = example(chain, f"{chain.chain_id}/clean", chain.steps, -1)
    for seed in seeds:
        for chain in chains:
            draw, whole = rng(seed, "cut", chain.chain_id), {"alpha": Fraction(0), "beta": Fraction(1)}
            try:
                row = perturb.replace_step(chain, negator, draw, **whole)
            except perturb.NoNegation:
                if dropped is not None:
                    dropped["no valid negation"] += 1
                continue
            steps = row.steps[: row.target + 1]
            name = f"{row.item_id}-{sha256(list(steps))[:12]}"
            examples[name] = example(chain, name, steps, row.target)
    return list(examples.values())


def gather(
    dataset: Dataset, *, extra: int = 2, synthetic: int = 150, more_natural: int = 0
) -> tuple[list[Example], Counter[str]]:
    """All examples of an experiment, and why there are fewer negations than asked for.

    To train on alone: `extra` further negations of each chain, `synthetic` chains with their clean twins, and
    `more_natural` natural-error items beyond those that judges are asked.
    """
    dropped: Counter[str] = Counter()
    seed = dataset.manifest["parameters"]["seed"]
    examples = benchmark_examples(dataset)
    examples += more_examples(dataset.chains, range(seed + 1, seed + 1 + extra), "injected", dropped)
    asked = sum(example.group == "natural" for example in examples)
    for row in dataset.natural[asked : asked + more_natural]:
        of = (row.item_id, row.chain_id, row.problem_id, "natural", row.question, row.steps)
        examples.append(Example(*of, row.first_error))
    if synthetic:
        chains = load_chains("synthetic", limit=synthetic, seed=seed)
        examples += more_examples(chains, [seed], "synthetic", dropped)
    return examples, dropped


@dataclass(frozen=True)
class Split:
    """Examples of disjoint problems."""

    train: tuple[Example, ...]
    development: tuple[Example, ...]
    test: tuple[Example, ...]


def split(examples: Sequence[Example], rotation: int, folds: int, seed: int = 0) -> Split:
    """Test on fold `rotation`, develop on the next, train on the others.

    Only benchmark items are developed and tested on; synthetic chains always train.

    Raises
    ------
    InputError
        If a part has no faulty or no clean chain: nothing could be learned from it, or measured on it.
    """
    if folds < 3:
        raise InputError(f"FOLDS={folds}: train, development and test need at least 3")
    turn = {rotation % folds: "test", (rotation + 1) % folds: "development"}
    parts: dict[str, list[Example]] = {"train": [], "development": [], "test": []}
    for example in examples:
        name = turn.get(fold_of(example.question, folds, seed), "train")
        if name == "train" or example.group == "synthetic":
            if example.group != "detection":  # training cuts chains off by itself
                parts["train"].append(example)
        elif example.item is not None:
            parts[name].append(example)
    for name, part in parts.items():
        found = {"faulty" if e.target >= 0 else "clean" for e in part if e.target is not None}
        if missing := {"faulty", "clean"} - found:
            raise InputError(
                f"the {name} part of rotation {rotation} has no {max(missing)} chain; "
                "give more problems or fewer FOLDS"
            )
    return Split(*map(tuple, parts.values()))


@dataclass(frozen=True)
class Batch:
    """Padded chains with the rewards of all their verdicts."""

    inputs: Any  # what the module reads; for a head on cached features, Tensor (batch, n_steps, n_features)
    mask: Tensor  # (batch, n_steps): True where there is a step that was seen
    rewards: Tensor  # (batch, n_steps + 1): of every localization verdict, the last one −1; 0 where there is none
    truth: Tensor  # (batch,): the right verdict's column, −1 (the last) for a clean chain
    weight: Tensor  # (batch,): what the chain counts in localization; 0 where that is not asked
    missing: Tensor  # (batch, n_steps): steps removed before each step
    score_rewards: Tensor  # (batch, 5): of every coverage score
    gap_weight: Tensor  # (batch,): what the chain counts in coverage; 0 where nobody counted the missing steps

    def select(self, indices: Sequence[int]) -> Batch:
        """The rows with these indices, padded no further than they need."""
        rows = torch.as_tensor(indices)
        longest = int(self.mask[rows].sum(-1).max())
        kept = vars(self) | {name: getattr(self, name)[:, :longest] for name in ("inputs", "mask", "missing")}
        kept["rewards"] = torch.cat([self.rewards[:, :longest], self.rewards[:, -1:]], -1)
        return Batch(**{name: x[rows] for name, x in kept.items()})

    def to(self, device: torch.device) -> Batch:
        """The same on another device; inputs that are no tensor stay as they are."""
        return Batch(**{name: x.to(device) if isinstance(x, Tensor) else x for name, x in vars(self).items()})


def stack(chains: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Chains of features, each (n_steps, n_features), padded to one tensor, and the mask of their steps."""
    lengths = torch.tensor([len(chain) for chain in chains], device=chains[0].device)
    padded = pad_sequence(list(chains), batch_first=True)
    return padded, torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]


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
    random_seed : int, optional
        Reward every verdict at random, uniformly in [−1, 1]: a control that has nothing to teach.
    """
    inputs, mask = stack(chains)
    n, longest = mask.shape
    rewards, truth = torch.zeros(n, longest + 1), torch.zeros(n, dtype=torch.long)
    missing, scores = torch.zeros(n, longest), torch.zeros(n, 5)
    located, counted = torch.zeros(n), torch.zeros(n)
    kinds = Counter((e.group, e.target >= 0) for e in examples if e.target is not None)
    classes = Counter(group for group, _ in kinds)
    for row, (example, seen) in enumerate(zip(examples, map(len, chains), strict=True)):
        if example.target is not None:
            table = verdict_rewards(len(example.steps), example.target, exact_only=exact_only)
            if random_seed is not None:
                table = rng(random_seed, "random reward", example.item_id).uniform(WORST, 1, len(table))
            rewards[row, :seen], rewards[row, -1] = torch.tensor(table[:seen]), table[-1]
            truth[row], kind = example.target, (example.group, example.target >= 0)
            located[row] = kinds.total() / len(classes) / classes[example.group] / kinds[kind]
        if example.missing is not None and seen == len(example.steps):
            missing[row, :seen] = torch.tensor(example.missing)
            table = score_rewards(example.coverage)
            if random_seed is not None:
                table = rng(random_seed, "random score", example.item_id).uniform(WORST, 1, len(table))
            scores[row], counted[row] = torch.tensor(table), 1.0
    return Batch(inputs, mask, rewards, truth, located, missing, scores, counted)
