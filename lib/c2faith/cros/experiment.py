"""The judges to compare, each trained on the same examples and tested on problems it never saw.

Problems are dealt into folds by their text. In rotation k a judge is tested on fold k, its thresholds and its
best moment are chosen on the next fold, and it trains on the rest; over all rotations each problem is tested once.
"""

from __future__ import annotations

import copy
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed
from torch import Tensor, nn
from tqdm import tqdm

from c2faith.cros.examples import Batch, Example, Split, batch_of, split, usable
from c2faith.cros.heads import Projection, Reading, StepHead, TrainedHead, best_threshold
from c2faith.cros.reading import SCALARS, StepFeatures, Written
from c2faith.cros.summaries import Comparison, Heads, Row, by_seed, by_task, guessed, judged
from c2faith.cros.train import Recipe, Run, progress, train
from c2faith.records import InputError, sha256

LINEAR = {"optimizer": "sgd", "learning_rate": 0.1, "weight_decay": 0.03}  # how heads on frozen features train
RARE = -8.0  # a hazard logit so low that which step is likeliest depends on its own logit alone

# What each trained judge goes on with after the warm start: (objective, reward).
JUDGES = {
    "warm": ("warm", "shaped"),
    "exact": ("exact", "shaped"),
    "exact-only": ("exact", "exact_only"),
    "anchored": ("exact", "shaped"),  # the only one whose divergence from the warm start costs `tuned.kl`
    "sampled": ("sampled", "shaped"),
    "random": ("exact", "random"),
}
ALL = ("chance", "untrained", "surprisal", *JUDGES)


@dataclass(frozen=True)
class Settings:
    """What all judges of an experiment share."""

    components: int = 128  # of the projection
    hidden: int = 0
    dropout: float = 0.0
    warm: Recipe = field(default_factory=lambda: Recipe("warm", **LINEAR))
    # What each policy gradient, and the longer warm start, goes on with; `kl` is of the judge ``anchored`` alone.
    tuned: Recipe = field(default_factory=lambda: Recipe("exact", **LINEAR))
    groups: tuple[str, ...] = ()  # of examples to train on and choose thresholds with; all of them if empty
    share: float = 1.0  # of the training problems that is used, for learning curves


class OnBatch(nn.Module):
    """A head on a batch of cached features."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return self.head(batch.inputs)


class Surprisal(nn.Module):
    """No training: a step is the more suspect the more its tokens surprised the model; nothing is ever missing."""

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        column = features.shape[-1] // 2 - len(SCALARS) + SCALARS.index("surprisal_mean")
        return RARE + features[..., column], torch.full(features.shape[:-1], RARE)


class Trainer:
    """One rotation and seed: the examples, the projection and the warm start that its judges have in common.

    `unseen` counts the examples left out because the part that says something did not fit into the context.
    """

    def __init__(
        self,
        parts: Split,
        features: Mapping[Written, StepFeatures],
        settings: Settings,
        seed: int,
        *,
        folder: Path | None = None,
    ) -> None:
        self.settings, self.seed, self.features, self.folder = settings, seed, features, folder
        self.unseen = 0
        training, chains = self._readable(parts.train, settings.share)
        if not training:
            raise InputError("no training chain fits into the context: give more MAX_TOKENS or more problems")
        self.projection = Projection.fit(chains, settings.components, seed)
        inputs = [self.projection(chain) for chain in chains]
        self.batches = {
            "shaped": batch_of(training, inputs),
            "exact_only": batch_of(training, inputs, exact_only=True),
            "random": batch_of(training, inputs, random_seed=seed),
        }
        self.held, chains = self._readable(parts.development)
        self.held_batch = batch_of(self.held, [self.projection(chain) for chain in chains])
        self._start: StepHead | None = None

    def _readable(
        self, examples: Sequence[Example], share: float = 1.0
    ) -> tuple[list[Example], list[StepFeatures]]:
        """Examples of the settings' groups and of a share of the problems whose seen part says something."""
        chosen = [e for e in examples if not self.settings.groups or e.group in self.settings.groups]
        # In an order of their own, so that a larger share only adds problems.
        problems = sorted({e.problem_id for e in chosen}, key=lambda name: sha256([self.seed, name]))
        problems = set(problems[: max(1, round(share * len(problems)))])
        chosen = [e for e in chosen if e.problem_id in problems]
        kept = [e for e in chosen if usable(e, self.features[e.written].n_seen)]
        self.unseen += len(chosen) - len(kept)
        return kept, [self.features[e.written] for e in kept]

    def untrained(self) -> TrainedHead:
        """A head as it is born."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            head = StepHead(self.projection.n_features, self.settings.hidden, self.settings.dropout)
        return self.finished(head)

    def judge(self, name: str) -> tuple[TrainedHead, Run]:
        """The judge of that name in `ALL` but ``chance``; those of `JUDGES` all go on from the same warm start."""
        if name == "untrained":
            return self.untrained(), Run()
        if name == "surprisal":
            return self.finished(Surprisal()), Run()
        if self._start is None:
            self._start = self.untrained().head
            self._train(self._start, self.settings.warm, "shaped", "start")
        objective, reward = JUDGES[name]
        head, kl = copy.deepcopy(self._start), self.settings.tuned.kl if name == "anchored" else 0.0
        run = self._train(head, replace(self.settings.tuned, objective=objective, kl=kl), reward, name)
        return self.finished(head), run

    def _train(self, head: StepHead, recipe: Recipe, reward: str, name: str) -> Run:
        batch = self.batches[reward]
        # Choosing its best moment by true rewards would teach the judge of random ones what it must not know.
        select = None if reward == "random" else "likelihood" if recipe.objective == "warm" else "reward"
        return train(
            OnBatch(head),
            batch.select,
            len(batch.mask),
            replace(recipe, seed=self.seed),
            lambda module: progress(module(self.held_batch), self.held_batch),
            anchor=OnBatch(copy.deepcopy(head)) if recipe.kl else None,
            select=select,
            checkpoint=self.folder / f"{name}.pt" if self.folder else None,
        )

    def finished(self, head: nn.Module) -> TrainedHead:
        """The head with thresholds chosen on the development problems."""
        judge = TrainedHead(self.projection, head)
        return with_thresholds(judge, self.held, judge.read([self.features[e.written] for e in self.held]))


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


def compare(
    examples: Sequence[Example],
    features: Mapping[Written, StepFeatures],
    *,
    settings: Settings,
    folds: int = 5,
    rotations: Sequence[int] | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    judges: Sequence[str] = ALL,
    folder: Path | None = None,
    workers: int = 1,
    label: str = "training judges",
) -> Comparison:
    """Train and test the judges, each problem tested by heads that never saw it.

    Parameters
    ----------
    folds, rotations
        Problems are dealt into `folds`; each rotation tests one of them, by default all in turn.
    folder : Path, optional
        Where checkpoints are kept: an interrupted comparison goes on where it stopped.
    workers : int
        Processes that train at the same time; the result does not depend on it.
    """
    turns = [(k, seed) for k in (range(folds) if rotations is None else rotations) for seed in seeds]
    packed = _Packed(features)

    def tested(turn: tuple[int, int]) -> tuple[list[Row], list[Row], list[Row], Heads, int]:
        """What one rotation and seed adds to each part of the comparison."""
        (rotation, seed), known = turn, packed.features()
        parts = split(examples, rotation, folds)
        place = folder / f"rotation{rotation}-seed{seed}" if folder else None
        trainer = Trainer(parts, known, settings, seed, folder=place)
        readable = [known[e.written] for e in parts.test]
        rows, steps, log, heads = guessed(seed, parts.test) if "chance" in judges else [], [], [], {}
        for name in (name for name in judges if name != "chance"):
            head, run = trainer.judge(name)
            heads[name, seed, rotation] = head
            log += [{"judge_id": name, "seed": seed, "rotation": rotation, **row} for row in run.log]
            answers, doubts = judged(name, seed, parts.test, head.read(readable), head)
            rows, steps = rows + answers, steps + doubts
        return rows, steps, log, heads, trainer.unseen

    found = in_turn(tested, turns, workers=workers, label=label)
    rows, steps, logs, heads, unseen = zip(*found, strict=True)
    steps, log = (pd.DataFrame([row for part in table for row in part]) for table in (steps, logs))
    heads = {key: head for part in heads for key, head in part.items()}
    return Comparison(by_task(row for part in rows for row in part), steps, log, heads, max(unseen))


def learning_curve(*data: Any, shares: Sequence[float], settings: Settings, **options: Any) -> pd.DataFrame:
    """`by_seed` for some shares of the training problems, one comparison each of the same data and options."""
    points = []
    for share in shares:
        part = {"settings": replace(settings, share=share), "label": f"{share:.0%} of the problems"}
        points.append(by_seed(compare(*data, **part, **options), share))
    return pd.concat(points, ignore_index=True)


class _Packed:
    """Features as two large arrays, which joblib lays into memory that all workers share."""

    def __init__(self, features: Mapping[Written, StepFeatures]) -> None:
        self.lengths = [(written, chain.n_seen, chain.n_steps) for written, chain in features.items()]
        self.states = torch.cat([chain.states for chain in features.values()]).numpy()
        self.scalars = torch.cat([chain.scalars for chain in features.values()]).numpy()

    def features(self) -> dict[Written, StepFeatures]:
        written, seen, n_steps = zip(*self.lengths, strict=True)
        states, scalars = (torch.from_numpy(whole).split(seen) for whole in (self.states, self.scalars))
        return dict(zip(written, map(StepFeatures, states, scalars, n_steps), strict=True))


def in_turn(function: Callable[[Any], Any], turns: Sequence[Any], *, workers: int, label: str) -> Iterator[Any]:
    """``function(turn)`` for every turn, in order; what comes out does not depend on `workers`."""
    # Copy on write, since torch warns of arrays that it may not write to.
    pool = Parallel(max(1, min(workers, len(turns))), return_as="generator", mmap_mode="c")
    results = pool(delayed(_alone)(function, turn, os.getpid()) for turn in turns)
    yield from tqdm(results, label, len(turns), mininterval=2)


def _alone(function: Callable[[Any], Any], turn: Any, parent: int) -> Any:
    """Call in one thread: heads are so small that several would mostly wait for each other."""
    if os.getpid() != parent:
        _end_with(parent)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return function(turn)
    finally:
        torch.set_num_threads(threads)


@cache
def _end_with(parent: int) -> None:
    """End this worker once its parent is gone: joblib's would finish their turn first, and then wait for more."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
