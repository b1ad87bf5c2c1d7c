"""All judges over all rotations and seeds, as verdict frames that the benchmark's own metrics read.

A frame holds each test item once a seed (its id ends in ``~seed0`` …), under its chain, so that intervals
resample chains and what seeds differ in stays within one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from c2faith.cros import parallel
from c2faith.cros.examples import Example, split
from c2faith.cros.experiment import JUDGES, Settings, Trainer
from c2faith.cros.heads import Reading, TrainedHead
from c2faith.cros.reading import SCALARS, StepFeatures, Written
from c2faith.records import rng

Row = dict[str, Any]
UNTAUGHT = ("chance", "untrained", "surprisal")
ALL = (*UNTAUGHT, *JUDGES)
RARE = -8.0  # a hazard logit so low that which step is likeliest depends on its own logit alone


class Surprisal(nn.Module):
    """No training: a step is the more suspect the more its tokens surprised the model, on average."""

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Hazard logits that rise with the mean surprisal; nothing is ever missing."""
        column = features.shape[-1] // 2 - len(SCALARS) + SCALARS.index("surprisal_mean")
        return RARE + features[..., column], torch.full(features.shape[:-1], RARE)


@dataclass
class Comparison:
    """What `compare` found.

    Attributes
    ----------
    frames : dict of str to DataFrame
        Verdict frames of detection, localization and coverage, with the column `seed`.
    steps : DataFrame
        One row a judge, seed and step up to the first faulty one: judge_id, seed, kind, chain_id, hazard,
        faulty.
    log : DataFrame
        The trainings' evaluations on development problems: judge_id, seed, rotation, update, likelihood, …
    heads : dict
        (judge, seed, rotation) → the trained head.
    unseen : int
        Training examples that said nothing because they did not fit into the context.
    """

    frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    steps: pd.DataFrame = field(default_factory=pd.DataFrame)
    log: pd.DataFrame = field(default_factory=pd.DataFrame)
    heads: dict[tuple[str, int, int], TrainedHead] = field(default_factory=dict)
    unseen: int = 0


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
    examples, features
        All examples, and the step features of what they say.
    folds, rotations
        Problems are dealt into `folds`; each rotation tests one of them, by default all in turn.
    folder : Path, optional
        Where checkpoints are kept: an interrupted comparison goes on where it stopped.
    workers : int
        Processes that train at the same time; the result does not depend on it.
    """
    turns = [(k, seed) for k in (range(folds) if rotations is None else rotations) for seed in seeds]
    common = (examples, features, settings, {"folds": folds, "judges": tuple(judges), "folder": folder})
    found, rows, steps, logs = Comparison(), [], [], []
    for part in parallel.over(_turn, common, turns, workers=workers, label=label):
        found.unseen = max(found.unseen, part.unseen)
        found.heads |= part.heads
        rows += part.rows
        steps += part.steps
        logs += part.log
    found.frames = by_task(rows)
    found.steps, found.log = pd.DataFrame(steps), pd.DataFrame(logs)
    return found


@dataclass
class _Part:
    """What one rotation and seed adds to a comparison."""

    rows: list[Row] = field(default_factory=list)
    steps: list[Row] = field(default_factory=list)
    log: list[Row] = field(default_factory=list)
    heads: dict[tuple[str, int, int], TrainedHead] = field(default_factory=dict)
    unseen: int = 0


def _turn(
    examples: Sequence[Example],
    features: Mapping[Written, StepFeatures],
    settings: Settings,
    options: Mapping[str, Any],
    turn: tuple[int, int],
) -> _Part:
    (rotation, seed), judges, folder = turn, options["judges"], options["folder"]
    parts = split(examples, rotation, options["folds"])
    place = folder / f"rotation{rotation}-seed{seed}" if folder else None
    trainer = Trainer(parts, features, settings, seed, folder=place)
    part = _Part(unseen=trainer.unseen)
    if "chance" in judges:
        part.rows += _guesses(parts.test, seed)
    readable = [features[e.written] for e in parts.test]
    for name in (name for name in judges if name != "chance"):
        head, log = _trained(trainer, name)
        part.heads[name, seed, rotation] = head
        part.log += [{"judge_id": name, "seed": seed, "rotation": rotation, **row} for row in log]
        answers, doubts = judged(name, seed, parts.test, head.read(readable), head)
        part.rows += answers
        part.steps += doubts
    return part


def by_task(rows: Sequence[Row]) -> dict[str, pd.DataFrame]:
    """Verdict frames, one a task, with the columns that the task has."""
    tasks = dict.fromkeys(row["task"] for row in rows)
    return {task: pd.DataFrame([row for row in rows if row["task"] == task]) for task in tasks}


def judged(
    name: str, seed: int, examples: Sequence[Example], readings: Sequence[Reading], head: TrainedHead
) -> tuple[list[Row], list[Row]]:
    """A head's verdicts on benchmark items, as rows of verdict frames, and the hazards of their steps."""
    rows, steps = [], []
    for example, reading in zip(examples, readings, strict=True):
        rows.append(_row(example, name, seed, *_answer(example, reading, head)))
        if example.group in ("injected", "natural"):
            steps += _step_rows(name, seed, example, reading)
    return rows, steps


def _trained(trainer: Trainer, name: str) -> tuple[TrainedHead, list[dict[str, float]]]:
    if name == "untrained":
        return trainer.untrained(), []
    if name == "surprisal":
        return trainer.finished(Surprisal()), []
    head, run = trainer.judge(name)
    return head, run.log


def _answer(example: Example, reading: Reading, head: TrainedHead) -> tuple[int | None, float]:
    """(verdict or None, confidence) on an item, as the judge itself would answer."""
    if example.group == "detection":
        hazard = float(reading.hazards[-1]) if reading.whole else math.nan
        return (int(hazard < head.step_threshold) if reading.whole else None), hazard
    if example.group == "coverage":
        return reading.score(), float(reading.scores.max())
    return reading.localization(head.clean_threshold), float(1 - reading.verdicts[-1])


def _guesses(examples: Sequence[Example], seed: int) -> list[Row]:
    """Chance: an error is claimed half of the time, anywhere; every coverage score is as likely."""
    rows = []
    for example in examples:
        draw = rng(seed, "chance", example.item_id)
        claim, step = int(draw.integers(2)), int(draw.integers(len(example.steps)))
        value = {"detection": claim, "coverage": int(draw.integers(5))}.get(example.group, step if claim else -1)
        rows.append(_row(example, "chance", seed, value, 0.5))
    return rows


def _row(example: Example, name: str, seed: int, value: int | None, confidence: float) -> dict[str, Any]:
    item = example.item
    reference = {}
    if example.missing is not None and example.group == "coverage":
        reference["reference"] = 4 * len(item.steps) / (len(item.steps) + sum(example.missing))
    return {
        "judge_id": name,
        "seed": seed,
        "task": item.task,
        "item_id": f"{item.item_id}~seed{seed}",
        "chain_id": item.chain_id,
        "problem_id": item.problem_id,
        "kind": item.kind,
        "n_steps": item.n_steps,
        **item.labels,
        **reference,
        "value": math.nan if value is None else float(value),
        "status": "length" if value is None else "ok",
        "confidence": confidence,
        "reasoning": "",
    }


def _step_rows(name: str, seed: int, example: Example, reading: Reading) -> list[Row]:
    """One row a step up to the first faulty one."""
    last = example.target if example.target >= 0 else len(example.steps) - 1
    common = {"judge_id": name, "seed": seed, "kind": example.group, "chain_id": example.chain_id}
    return [
        {**common, "hazard": float(hazard), "faulty": index == example.target}
        for index, hazard in enumerate(reading.hazards[: last + 1])
    ]
