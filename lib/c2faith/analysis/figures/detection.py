"""Figures of Exp 1, detection: 2a the rates, 7 the rates by position; against false alarms; with less context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from c2faith.analysis.figures import layout
from c2faith.analysis.figures.layout import INTERVALS, counted, note, unanswered
from c2faith.analysis.figures.registry import column, figure, having, rates, shown
from c2faith.analysis.figures.style import COLUMN, FAINT, INK, MUTED, PAGE, Looks
from c2faith.analysis.metrics import Measured

POSITION_BINS = 5
_CONDITIONS: Mapping[str, dict[str, Any]] = {
    "detection": {"label": "full context", "facecolor": MUTED, "edgecolor": INK},
    "step_only": {"label": "the step alone", "facecolor": "white", "edgecolor": INK, "hatch": "////"},
    "shuffled": {"label": "earlier steps shuffled", "facecolor": FAINT, "edgecolor": INK, "hatch": "...."},
}
_, *_ABLATIONS = _CONDITIONS


@figure(
    "fig2a_detection",
    caption="Exp 1: perturbed steps detected, and clean twins flagged.",
    needs=("detection",),
)
def fig2a_detection(measured: Measured, looks: Looks) -> Figure:
    """Fig. 2a: share of perturbed steps that each judge flags, and of clean twins that it flags too [+].

    An unanswered item counts as not flagged.
    """
    frame, looks = shown(measured, "detection", looks)
    if not looks:
        return layout.empty("No detection verdicts")
    table = measured.of("detection", "detection")
    twins = bool(table["n_clean"].any())
    bars = [("detection", "perturbed step", 1.0), ("false_alarm", "clean twin (false alarm)", 0.45)][: 1 + twins]
    picture, axes = layout.canvas(COLUMN, 1.0 + 0.32 * len(looks))
    rows, height = np.arange(len(looks)), 0.78 / len(bars)
    for (name, _, alpha), offset in zip(bars, layout.dodge(len(bars), height), strict=True):
        found = column(table, name, looks)
        for row, look, rate in zip(rows, looks.values(), found.itertuples(), strict=True):
            axes.barh(row + offset, rate.value, height, alpha=alpha, **look.bar)
            place = {"x": np.nanmax([rate.high, rate.value]) + 0.015, "y": row + offset, "va": "center_baseline"}
            layout.print_rate(axes, rate.value, digits=1, **place)
        layout.whiskers(axes, rows + offset, found, vertical=False)
    axes.set(yticks=rows, yticklabels=[look.label for look in looks.values()], ylim=(len(looks) - 0.5, -0.5))
    layout.shares(axes, "x", (0, 1.14))
    axes.grid(axis="x")
    axes.grid(False, axis="y")
    axes.set_xlabel("steps flagged as not following (%)")
    layout.legend(picture, [Patch(color=MUTED, alpha=alpha, label=label) for _, label, alpha in bars])
    alone = "" if twins else "no clean twins: false alarms unknown"
    note(picture, counted(frame), alone, unanswered(frame, looks), INTERVALS)
    return picture


@figure("fig7_position", caption="Exp 1: detection by the step's position in its chain.", needs=("detection",))
def fig7_position(measured: Measured, looks: Looks) -> Figure:
    """Fig. 7: detection rate by relative position of the perturbed step, in 5 bins of equal width.

    The position is target / chain length, so 0 is the first step; the bins span the positions that occur.
    """
    bad, looks = shown(measured, "detection", looks, "perturbed")
    if not looks:
        return layout.empty("No detection verdicts on perturbed steps")
    position = bad["target"] / bad["n_steps"]
    edges = np.histogram_bin_edges(position, POSITION_BINS)
    cell = np.clip(np.searchsorted(edges, position, side="right") - 1, 0, POSITION_BINS - 1)
    found = [rates(measured, bad, looks, bad["value"] == 0, cell == b) for b in range(POSITION_BINS)]
    counts = [bad.loc[cell == b, "item_id"].nunique() for b in range(POSITION_BINS)]
    xlabel, ylabel = "share of the chain before the step", "perturbed steps detected (%)"
    at = np.arange(POSITION_BINS)
    picture, grid = layout.curves(looks, at, found, gap=0.6, xlabel=xlabel, ylabel=ylabel)
    spans = zip(edges, edges[1:], counts, strict=False)
    grid[0].set_xticks(at, [f"{low:.2f}–\n{high:.2f}\n({count})" for low, high, count in spans])
    layout.shares(grid[0])
    layout.legend(picture, layout.line_handles(looks, grid))
    note(picture, counted(bad), unanswered(bad, looks), layout.undefined(*found), INTERVALS)
    return picture


@figure("false_alarm_plane", caption="Exp 1: detection against false alarms.", needs=("detection",))
def false_alarm_plane(measured: Measured, looks: Looks) -> Figure:
    """Detection rate against false-alarm rate, a point with both intervals for each judge [+].

    On the diagonal a judge flags without reading; the upper left corner is perfect. The thin line of a judge with
    confidences is its ROC curve: what other thresholds on P(does not follow) would give.
    """
    frame, looks = shown(measured, "detection", looks)
    if not looks or not (frame["kind"] == "clean").any():
        return layout.empty("No clean twins: false alarms are unknown")
    table = measured.of("detection", "detection")
    caught, alarmed = column(table, "detection", looks), column(table, "false_alarm", looks)
    picture, axes = layout.canvas(COLUMN, 3.6)
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.7, linestyle=":")
    for name, look in looks.items():
        x, y = alarmed["value"][name], caught["value"][name]
        axes.plot(*_roc(frame[frame["judge_id"] == name]), color=look.colour, linewidth=0.7, alpha=0.7)
        layout.whiskers(axes, [x], caught.loc[[name]], color=look.colour)
        layout.whiskers(axes, [y], alarmed.loc[[name]], color=look.colour, vertical=False)
        axes.plot(x, y, **look.line)
    axes.set(xlabel="clean twins flagged: false alarms (%)", ylabel="perturbed steps detected (%)", aspect="equal")
    axes.grid(True, axis="both")
    for along in "xy":
        layout.shares(axes, along, (-0.02, 1.02))
    layout.legend(picture, layout.line_handles(looks))
    lines = "thin lines: other thresholds on the confidence", "dotted: flagging at random"
    note(picture, counted(frame), unanswered(frame, looks), *lines, INTERVALS)
    return picture


def _roc(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """False-alarm and detection rates over the falling thresholds of the confidence; empty if there is none."""
    rows = rows[rows["confidence"].notna()]
    flagged = rows.groupby("confidence")["truth"].value_counts().unstack(fill_value=0)[::-1].cumsum()
    if not {0, 1} <= set(flagged.columns):
        return np.array([]), np.array([])
    found = flagged / flagged.iloc[-1]
    return np.append(0, found[1]), np.append(0, found[0])


@figure(
    "ablation",
    caption="Exp 1: what is flagged with the full context, without it, and with it shuffled.",
    needs=("detection",),
    any_of=tuple(_ABLATIONS),
)
def ablation(measured: Measured, looks: Looks) -> Figure:
    """Steps flagged by what a judge was shown: perturbed steps above, clean twins below, a group a judge [+].

    Judges without an ablation are left out. A non-answer counts as not flagged.
    """
    conditions = [task for task in _CONDITIONS if task in measured.verdicts]
    frames = {task: shown(measured, task, looks)[0] for task in conditions}
    asked = pd.concat([frame for task, frame in frames.items() if task != "detection"])
    looks = having(asked, looks)
    if not looks:
        return layout.empty("No judge was asked with less context")
    tables = {task: measured.of("detection", task) for task in conditions}
    wide = len(looks) > 3
    picture, grid = layout.canvas(PAGE if wide else COLUMN, 3.4, 2, 1, sharex=True, sharey=True)
    at, width = np.arange(len(looks)), 0.78 / len(tables)
    labels = {"detection": "perturbed steps\nflagged (%)", "false_alarm": "clean twins\nflagged (%)"}
    for axes, (name, label) in zip(grid, labels.items(), strict=True):
        for (task, table), offset in zip(tables.items(), layout.dodge(len(tables), width), strict=True):
            found = column(table, name, looks)
            axes.bar(at + offset, found["value"], width, **_CONDITIONS[task])
            layout.whiskers(axes, at + offset, found)
        axes.set_ylabel(label)
        layout.shares(axes)
    grid[1].set_xticks(at, [look.label for look in looks.values()], rotation=20 if wide else 0)
    layout.legend(picture, [Patch(**_CONDITIONS[task]) for task in conditions])
    planned = frames["detection"]["item_id"].nunique()
    skipped = planned - frames.get("shuffled", frames["detection"])["item_id"].nunique()
    few = f"shuffled: {skipped} items with fewer than two steps to shuffle are not asked" if skipped else ""
    note(picture, counted(frames["detection"]), few, unanswered(asked, looks), INTERVALS)
    return picture
