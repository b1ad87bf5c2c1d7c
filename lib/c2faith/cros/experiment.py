"""The judges to compare, each trained on the same examples and tested on problems it never saw.

Problems are dealt into folds by their text. In rotation k a judge is tested on fold k, its thresholds and its
best moment are chosen on the next fold, and it trains on the rest; over all rotations each problem is tested once.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from c2faith.cros.batches import Batch, batch_of, usable
from c2faith.cros.examples import Example, Split
from c2faith.cros.heads import Projection, Reading, StepHead, TrainedHead, best_threshold
from c2faith.cros.policy import entropy, expected_reward, score_log_probs, verdict_log_probs
from c2faith.cros.reading import StepFeatures, Written
from c2faith.cros.train import Recipe, Run, train
from c2faith.records import InputError, sha256

LINEAR = {"optimizer": "sgd", "learning_rate": 0.1, "weight_decay": 0.03}  # how heads on frozen features train


@dataclass(frozen=True)
class Settings:
    """What all judges of an experiment share.

    Attributes
    ----------
    components, hidden, dropout
        Of the projection and the head.
    warm, tuned : Recipe
        The warm start, and what every policy gradient (and the longer warm start) goes on with; its `kl` holds
        for the judge ``anchored`` alone.
    groups : tuple of str, or empty
        Groups of examples to train on and choose thresholds with; all of them if empty.
    share : float
        Share of the training problems that is used, for learning curves.
    """

    components: int = 128
    hidden: int = 0
    dropout: float = 0.0
    warm: Recipe = field(default_factory=lambda: Recipe("warm", **LINEAR))
    tuned: Recipe = field(default_factory=lambda: Recipe("exact", **LINEAR))
    groups: tuple[str, ...] = ()
    share: float = 1.0


# What each trained judge goes on with after the warm start: (objective, reward).
JUDGES = {
    "warm": ("warm", "shaped"),
    "exact": ("exact", "shaped"),
    "exact-only": ("exact", "exact_only"),
    "anchored": ("exact", "shaped"),  # the only one whose divergence from the warm start costs `tuned.kl`
    "sampled": ("sampled", "shaped"),
    "random": ("exact", "random"),
}


class Trainer:
    """One rotation and seed: the examples, the projection and the warm start that its judges have in common.

    Attributes
    ----------
    unseen : int
        Examples left out because the part that says something did not fit into the context.
    """

    def __init__(
        self,
        split: Split,
        features: Mapping[Written, StepFeatures],
        settings: Settings,
        seed: int,
        *,
        folder: Path | None = None,
    ) -> None:
        self.settings, self.seed, self.features, self.folder = settings, seed, features, folder
        self.unseen = 0
        training, chains = self._seen(_share(self._chosen(split.train), settings.share, seed))
        if not training:
            raise InputError("no training chain fits into the context: give more MAX_TOKENS or more problems")
        self.projection = Projection.fit(chains, settings.components, seed)
        inputs = [self.projection(chain) for chain in chains]
        self.batches = {
            "shaped": batch_of(training, inputs),
            "exact_only": batch_of(training, inputs, exact_only=True),
            "random": batch_of(training, inputs, random_seed=seed),
        }
        self.held, chains = self._seen(self._chosen(split.development))
        self.held_batch = batch_of(self.held, [self.projection(chain) for chain in chains])
        self._start: StepHead | None = None

    def _chosen(self, examples: Sequence[Example]) -> list[Example]:
        return [e for e in examples if not self.settings.groups or e.group in self.settings.groups]

    def _seen(self, examples: Sequence[Example]) -> tuple[list[Example], list[StepFeatures]]:
        """Examples whose seen part says something, with their features."""
        kept = [e for e in examples if usable(e, self.features[e.written].n_seen)]
        self.unseen += len(examples) - len(kept)
        return kept, [self.features[e.written] for e in kept]

    def untrained(self) -> TrainedHead:
        """A head as it is born."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            head = StepHead(self.projection.n_features, self.settings.hidden, self.settings.dropout)
        return self.finished(head)

    def judge(self, name: str) -> tuple[TrainedHead, Run]:
        """Train the judge of that name in `JUDGES`; all go on from the same warm start."""
        if self._start is None:
            self._start = self.untrained().head
            self._train(self._start, replace(self.settings.warm, seed=self.seed), "shaped", "start")
        objective, reward = JUDGES[name]
        head = copy.deepcopy(self._start)
        tuned = self.settings.tuned if name == "anchored" else replace(self.settings.tuned, kl=0.0)
        run = self._train(head, replace(tuned, objective=objective, seed=self.seed), reward, name)
        return self.finished(head), run

    def _train(self, head: StepHead, recipe: Recipe, reward: str, name: str) -> Run:
        batch = self.batches[reward]
        # Choosing its best moment by true rewards would teach the judge of random ones what it must not know.
        select = None if reward == "random" else "likelihood" if recipe.objective == "warm" else "reward"
        return train(
            OnBatch(head),
            batch.select,
            len(batch.mask),
            recipe,
            lambda module: progress(module(self.held_batch), self.held_batch),
            anchor=OnBatch(copy.deepcopy(head)) if recipe.kl else None,
            select=select,
            checkpoint=self.folder / f"{name}.pt" if self.folder else None,
        )

    def finished(self, head: StepHead) -> TrainedHead:
        """The head with thresholds chosen on the development problems."""
        judge = TrainedHead(self.projection, head)
        return with_thresholds(judge, self.held, judge.read([self.features[e.written] for e in self.held]))


class OnBatch(nn.Module):
    """A head on a batch of cached features."""

    def __init__(self, head: StepHead) -> None:
        super().__init__()
        self.head = head

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return self.head(batch.inputs)


def _share(examples: Sequence[Example], share: float, seed: int) -> list[Example]:
    """The examples of a share of the problems; a larger share only adds problems."""
    rank = {e.problem_id: sha256([seed, e.problem_id]) for e in examples}
    kept = set(sorted(rank, key=rank.get)[: max(1, round(share * len(rank)))])
    return [e for e in examples if e.problem_id in kept]


def progress(logits: tuple[Tensor, Tensor], held: Batch) -> dict[str, float]:
    """Log-likelihood and reward of the development chains, faulty and clean ones weighing the same."""
    hazard, gap = logits
    verdicts, scores = verdict_log_probs(hazard, held.mask), score_log_probs(gap, held.mask)
    right = verdicts.gather(-1, (held.truth % verdicts.shape[-1])[:, None])[:, 0]
    located = held.weight / held.weight.sum()
    counted = held.gap_weight / held.gap_weight.sum().clamp_min(1)
    return {
        "likelihood": float((right * located).sum()),
        "reward": float((expected_reward(verdicts, held.rewards) * located).sum()),
        "entropy": float((entropy(verdicts) * located).sum()),
        "coverage_reward": float((expected_reward(scores, held.score_rewards) * counted).sum()),
    }


def with_thresholds(judge: TrainedHead, examples: Sequence[Example], readings: Sequence[Reading]) -> TrainedHead:
    """The judge with the thresholds that serve the given examples best.

    For localization ProcessBench's F1 is maximized over the groups together, faulty and clean chains apart; for
    detection the mean of both accuracies over the steps up to the target.
    """
    located = [(e, r) for e, r in zip(examples, readings, strict=True) if e.target is not None]
    clean = np.array([r.verdicts[-1] for e, r in located if e.target < 0])
    faulty = np.array([r.verdicts[-1] for e, r in located if e.target >= 0])
    found = np.array([r.verdicts[:-1].argmax() == e.target for e, r in located if e.target >= 0])
    cut = [(e, r) for e, r in located if e.group == "detection"] or located
    good = np.array([1 - r.hazards[-1] for e, r in cut if e.target < 0])
    bad = np.array([1 - r.hazards[e.target] for e, r in cut if e.target >= 0])
    clean_threshold = best_threshold(clean, faulty, found, harmonic=True)
    step_threshold = 1 - best_threshold(good, bad, np.ones(len(bad), bool), harmonic=False)
    return replace(judge, clean_threshold=clean_threshold, step_threshold=step_threshold)
