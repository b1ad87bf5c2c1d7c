"""What a comparison of trained judges says: verdict frames, AUROC per step, learning curves, tests, pictures.

A frame holds each test item once a seed (its id ends in ``~seed0`` …), under its chain, so that intervals
resample chains and what seeds differ in stays within one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from c2faith.analysis import metrics
from c2faith.analysis.figures.style import FAINT, INK, MUTED, PAGE, Look, looks, styled
from c2faith.analysis.resampling import DRAWS
from c2faith.analysis.stats import holm, mcnemar
from c2faith.cros.examples import Example
from c2faith.cros.heads import Reading, TrainedHead
from c2faith.records import rng

Row = dict[str, Any]
Heads = dict[tuple[str, int, int], TrainedHead]  # by judge, seed and rotation


@dataclass
class Comparison:
    """What `experiment.compare` found."""

    frames: dict[str, pd.DataFrame]  # verdict frames by task, with the column `seed`
    steps: pd.DataFrame  # a row a judge, seed and step up to the first faulty one: kind, chain_id, hazard, faulty
    log: pd.DataFrame  # the trainings' evaluations on development problems, by judge, seed, rotation and update
    heads: Heads
    unseen: int  # training examples that said nothing because they did not fit into the context


def by_task(rows: Iterable[Row]) -> dict[str, pd.DataFrame]:
    """Verdict frames, one a task, with the columns that the task has."""
    tasks: dict[str, list[Row]] = {}
    for row in rows:
        tasks.setdefault(row["task"], []).append(row)
    return {task: pd.DataFrame(asked) for task, asked in tasks.items()}


def judged(
    name: str, seed: int, examples: Sequence[Example], readings: Sequence[Reading], head: TrainedHead
) -> tuple[list[Row], list[Row]]:
    """A head's verdicts on benchmark items, as rows of verdict frames, and the hazards of their steps."""
    rows, steps = [], []
    for example, reading in zip(examples, readings, strict=True):
        if example.group == "detection":
            confidence = float(reading.hazards[-1]) if reading.whole else math.nan
            value = int(confidence < head.step_threshold) if reading.whole else None
        elif example.group == "coverage":
            value, confidence = reading.score(), float(reading.scores.max())
        else:
            value, confidence = reading.localization(head.clean_threshold), float(1 - reading.verdicts[-1])
            known = {"judge_id": name, "seed": seed, "kind": example.group, "chain_id": example.chain_id}
            seen = reading.hazards[: example.target + 1 if example.target >= 0 else None]
            steps += [{**known, "hazard": float(h), "faulty": i == example.target} for i, h in enumerate(seen)]
        rows.append(_row(example, name, seed, value, confidence))
    return rows, steps


def guessed(seed: int, examples: Sequence[Example]) -> list[Row]:
    """Chance: an error is claimed half of the time, anywhere; every coverage score is as likely."""
    rows = []
    for example in examples:
        draw = rng(seed, "chance", example.item_id)
        claim, step = int(draw.integers(2)), int(draw.integers(len(example.steps)))
        value = {"detection": claim, "coverage": int(draw.integers(5))}.get(example.group, step if claim else -1)
        rows.append(_row(example, "chance", seed, value, 0.5))
    return rows


def _row(example: Example, name: str, seed: int, value: int | None, confidence: float) -> Row:
    item = example.item
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
        **({"reference": example.coverage} if example.group == "coverage" else {}),
        "value": math.nan if value is None else float(value),
        "status": "length" if value is None else "ok",
        "confidence": confidence,
        "reasoning": "",
    }


def _with_intervals(*names: str) -> list[str]:
    return [f"{name}{end}" for name in names for end in ("", "_low", "_high")]


def _error_kind(located: pd.DataFrame) -> pd.Series:
    return (located["kind"] == "natural").map({False: "injected", True: "natural"})


def step_auroc(steps: pd.DataFrame, *, draws: int = DRAWS) -> pd.DataFrame:
    """How well hazards tell the first faulty step from those before it and from clean chains' steps.

    One row a judge and kind of error: `n_steps`, `n_faulty`, `auroc` with its interval (0.5 is chance, ties count
    one half).
    """
    tables = []
    for kind, rows in steps.groupby("kind", sort=False):
        # A step is an item of detection whose hazard is the confidence; what was said of it is not asked here.
        asked = rows.assign(item_id=np.arange(len(rows)), n_steps=1, value=1.0, status="ok")
        asked = asked.assign(truth=1 - rows["faulty"], confidence=rows["hazard"])
        table = metrics.detection(asked, draws=draws).assign(kind=kind)
        tables.append(table.assign(n_steps=table["n"] + table["n_clean"], n_faulty=table["n"]))
    return pd.concat(tables)[["judge_id", "kind", "n_steps", "n_faulty", *_with_intervals("auroc")]]


def comparison(found: Comparison, *, draws: int = DRAWS) -> pd.DataFrame:
    """Localization of both kinds of error, and AUROC per step, one row a judge and kind.

    `n` counts verdicts on faulty chains, of all seeds; `auroc` is of the hazards.
    """
    located = found.frames["localization"]
    measured = _with_intervals("exact", "clean_accuracy", "processbench_f1", "detection", "mae_detected")
    parts = []
    for kind in sorted(set(_error_kind(located))):
        table = metrics.localization(located, natural=kind == "natural", draws=draws)
        parts.append(table[["judge_id", "n", "n_clean", "unanswered", *measured]].assign(kind=kind))
    table = pd.concat(parts, ignore_index=True)
    return table.merge(step_auroc(found.steps, draws=draws), on=["judge_id", "kind"], how="left")


def other_tasks(found: Comparison, *, draws: int = DRAWS) -> pd.DataFrame:
    """Detection and coverage, one row a judge; `mae` and `rho` of coverage are over all deletion levels at once."""
    detected = metrics.detection(found.frames["detection"], draws=draws)
    covered = metrics.coverage(found.frames["coverage"].assign(deletion_rate=0.0), draws=draws)
    left = detected[["judge_id", *_with_intervals("auroc", "balanced_accuracy", "false_alarm")]]
    return left.merge(covered[["judge_id", *_with_intervals("mae", "rho")]], on="judge_id")


def right(frame: pd.DataFrame) -> pd.DataFrame:
    """Items × judges: whether most seeds' verdicts were right, for McNemar's test between paired judges."""
    item = frame["item_id"].str.replace(r"~seed\d+$", "", regex=True)
    marks = frame.assign(item=item, right=(frame["value"] == frame["target"]).astype(float))
    return marks.pivot_table(index="item", columns="judge_id", values="right") > 0.5


def pairs(found: Comparison, judges: Sequence[str]) -> pd.DataFrame:
    """McNemar's test between each two judges on the same chains, by what most seeds say.

    `only_a` and `only_b` count chains that only one judges right, `p` is with continuity correction, and `p_holm`
    corrects the exact ones over the rows of a kind.
    """
    tables, located = [], found.frames["localization"]
    for kind, rows in located.groupby(_error_kind(located)):
        outcomes, tests = right(rows), []
        for a, b in combinations(judges, 2):
            test = mcnemar(outcomes[a], outcomes[b])
            counted = {"n": test.n, "only_a": test.b, "only_b": test.c, "p": test.p, "p_exact": test.p_exact}
            tests.append({"judge_a": a, "judge_b": b, "kind": kind, **counted})
        table = pd.DataFrame(tests)
        tables.append(table.assign(p_holm=holm(table["p_exact"])))
    return pd.concat(tables, ignore_index=True)


def by_seed(found: Comparison, share: float) -> pd.DataFrame:
    """A point of a learning curve at a share of the training problems, one row a judge, kind of error and seed."""
    tables, located = [], found.frames["localization"]
    for (seed, kind), rows in located.groupby(["seed", _error_kind(located)]):
        table = metrics.localization(rows, natural=kind == "natural", draws=2)
        kept = table[["judge_id", "processbench_f1", "exact", "clean_accuracy"]]
        tables.append(kept.assign(kind=kind, share=share, seed=seed))
    return pd.concat(tables, ignore_index=True)


def share_needed(curve: pd.DataFrame, f1: float) -> pd.Series:
    """The smallest share of the training problems with which a judge's mean F1 reaches `f1`, interpolated.

    NaN for a judge that never does.
    """

    def first(means: pd.Series) -> float:
        above = np.flatnonzero(means >= f1)
        if not len(above):
            return math.nan
        around = means.iloc[max(above[0] - 1, 0) : above[0] + 1]
        return float(np.interp(f1, around, around.index))

    return curve.groupby(["judge_id", "share"])["processbench_f1"].mean().unstack("judge_id").apply(first)


def _band(panel: Axes, values: pd.Series, by: str, scale: float, look: Look, **line: Any) -> None:
    """A line of the means by an index level, and a band from the least to the greatest value."""
    found = values.groupby(by).agg(["mean", "min", "max"])
    panel.plot(found.index * scale, found["mean"], label=look.label, **line)
    panel.fill_between(found.index * scale, found["min"], found["max"], color=look.colour, alpha=0.15, linewidth=0)


@styled
def learning_curves(curve: pd.DataFrame, problems: int) -> Figure:
    """F1 on test problems against the number of training problems, a panel a kind of error.

    Lines are means over seeds, bands their range; `problems` is the number of training problems at a share of 1.
    """
    kinds = list(pd.unique(curve["kind"]))
    figure, axes = plt.subplots(
        1, len(kinds), figsize=(PAGE, 2.4), sharey=True, squeeze=False, layout="constrained"
    )
    drawn = looks(curve["judge_id"])
    for kind, panel in zip(kinds, axes[0], strict=True):
        for judge, rows in curve[curve["kind"] == kind].groupby("judge_id"):
            values = rows.set_index("share")["processbench_f1"]
            _band(panel, values, "share", problems, drawn[judge], **drawn[judge].line)
        counts = sorted(curve["share"].unique() * problems)
        panel.set(xscale="log", xlabel=f"training problems ({kind} errors)")
        panel.set_xticks(counts, [f"{count:.0f}" for count in counts])
        panel.xaxis.set_minor_locator(NullLocator())
    axes[0, 0].set(ylabel="ProcessBench F1", ylim=(0, None))
    axes[0, -1].legend(loc="lower right")
    return figure


@styled
def training_curves(log: pd.DataFrame, column: str, label: str) -> Figure:
    """A column of the training log against the updates, means over rotations with the seeds' range as a band."""
    figure, panel = plt.subplots(figsize=(PAGE / 2, 2.4), layout="constrained")
    for judge, look in looks(log["judge_id"]).items():
        values = log[log["judge_id"] == judge].groupby(["update", "seed"])[column].mean()
        _band(panel, values, "update", 1, look, color=look.colour, linestyle=look.dashes)
    panel.set(xlabel="updates after the warm start", ylabel=label)
    panel.legend()
    return figure


@styled
def hazards(readings: Mapping[str, Sequence[float]], target: int) -> Figure:
    """The hazard of every step of a chain and of its twin, by label, the broken step marked."""
    figure, panel = plt.subplots(figsize=(PAGE / 2, 2.0), layout="constrained")
    drawn = looks(readings)
    for label, values in readings.items():
        panel.plot(range(len(values)), values, label=label, **drawn[label].line)
    panel.axvline(target, color=FAINT, linewidth=6, zorder=0)
    panel.annotate("broken", (target, 1), color=MUTED, ha="center", va="top", xycoords=("data", "axes fraction"))
    panel.set(xlabel="step", ylabel="hazard", ylim=(0, None))
    panel.tick_params(colors=INK)
    panel.legend()
    return figure
