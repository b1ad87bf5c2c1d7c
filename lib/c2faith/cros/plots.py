"""Pictures of a training: what more problems teach, how the reward rises, and the hazards of a chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from c2faith.analysis.figures import style
from c2faith.analysis.figures.style import FAINT, INK, MUTED, PAGE


@style.styled
def learning_curves(curve: pd.DataFrame, problems: int) -> Figure:
    """F1 on test problems against the number of training problems, a panel a kind of error.

    Parameters
    ----------
    curve : DataFrame
        What `summaries.learning_curve` gives. Lines are means over seeds, bands their range.
    problems : int
        Training problems at a share of 1.
    """
    kinds = list(pd.unique(curve["kind"]))
    figure, axes = plt.subplots(
        1, len(kinds), figsize=(PAGE, 2.4), sharey=True, squeeze=False, layout="constrained"
    )
    looks = style.looks(curve["judge_id"])
    for kind, panel in zip(kinds, axes[0], strict=True):
        for judge, rows in curve[curve["kind"] == kind].groupby("judge_id"):
            found = rows.groupby("share")["processbench_f1"].agg(["mean", "min", "max"])
            at, look = found.index * problems, looks[judge]
            panel.plot(at, found["mean"], label=look.label, **look.line)
            panel.fill_between(at, found["min"], found["max"], color=look.colour, alpha=0.15, linewidth=0)
        counts = sorted(curve["share"].unique() * problems)
        panel.set(xscale="log", xlabel=f"training problems ({kind} errors)")
        panel.set_xticks(counts, [f"{count:.0f}" for count in counts])
        panel.xaxis.set_minor_locator(NullLocator())
    axes[0, 0].set(ylabel="ProcessBench F1", ylim=(0, None))
    axes[0, -1].legend(loc="lower right")
    return figure


@style.styled
def training_curves(log: pd.DataFrame, column: str, label: str) -> Figure:
    """A column of the training log against the updates, means over rotations with the seeds' range as a band."""
    figure, panel = plt.subplots(figsize=(PAGE / 2, 2.4), layout="constrained")
    looks = style.looks(log["judge_id"])
    for judge, rows in log.groupby("judge_id"):
        seeds = rows.groupby(["update", "seed"])[column].mean().groupby("update").agg(["mean", "min", "max"])
        look = looks[judge]
        panel.plot(seeds.index, seeds["mean"], label=look.label, color=look.colour, linestyle=look.dashes)
        panel.fill_between(seeds.index, seeds["min"], seeds["max"], color=look.colour, alpha=0.15, linewidth=0)
    panel.set(xlabel="updates after the warm start", ylabel=label)
    panel.legend()
    return figure


@style.styled
def hazards(readings: Mapping[str, Sequence[float]], target: int) -> Figure:
    """The hazard of every step of a chain and of its twin, the broken step marked.

    Parameters
    ----------
    readings : mapping of label to hazards
    """
    figure, panel = plt.subplots(figsize=(PAGE / 2, 2.0), layout="constrained")
    looks = style.looks(readings)
    for label, values in readings.items():
        panel.plot(range(len(values)), values, label=label, **looks[label].line)
    panel.axvline(target, color=FAINT, linewidth=6, zorder=0)
    panel.annotate("broken", (target, 1), color=MUTED, ha="center", va="top", xycoords=("data", "axes fraction"))
    panel.set(xlabel="step", ylabel="hazard", ylim=(0, None))
    panel.tick_params(colors=INK)
    panel.legend()
    return figure
