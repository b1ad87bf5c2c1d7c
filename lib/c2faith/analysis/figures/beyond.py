"""Figures beyond the paper: detections against false alarms, and whether confidences mean what they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from c2faith.analysis import metrics
from c2faith.analysis.figures import layout, notes, style
from c2faith.analysis.figures.estimates import column
from c2faith.analysis.figures.style import COLUMN, FAINT, INK, MUTED, PAGE, Looks, Rng, styled
from c2faith.analysis.resampling import DRAWS

_CONDITIONS: Mapping[str, dict[str, Any]] = {
    "detection": {"label": "full context", "facecolor": MUTED, "edgecolor": INK},
    "step_only": {"label": "the step alone", "facecolor": "white", "edgecolor": INK, "hatch": "////"},
    "shuffled": {"label": "earlier steps shuffled", "facecolor": FAINT, "edgecolor": INK, "hatch": "...."},
}


@styled
def false_alarm_plane(
    detection: pd.DataFrame, *, looks: Looks | None = None, draws: int = DRAWS, rng: Rng = 0
) -> Figure:
    """Detection rate against false-alarm rate, a point with both intervals for each judge [+].

    On the diagonal a judge flags without reading; the upper left corner is perfect. The thin line of a judge with
    confidences is its ROC curve: what other thresholds on P(does not follow) would give. Parameters as in
    `fig2a_detection`.
    """
    looks = style.present(detection, looks)
    if not looks or not (detection["kind"] == "clean").any():
        return layout.empty("No clean twins: false alarms are unknown")
    table = metrics.detection(detection, draws=draws, rng=rng)
    caught, alarmed = column(table, "detection", looks), column(table, "false_alarm", looks)
    figure, axes = layout.canvas(COLUMN, 3.6)
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.7, linestyle=":")
    for name, look in looks.items():
        x, y = alarmed["value"][name], caught["value"][name]
        axes.plot(*_roc(detection[detection["judge_id"] == name]), color=look.colour, linewidth=0.7, alpha=0.7)
        layout.whiskers(axes, [x], caught.loc[[name]], color=look.colour)
        layout.whiskers(axes, [y], alarmed.loc[[name]], color=look.colour, vertical=False)
        axes.plot(x, y, **look.line)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    axes.set(xticks=np.linspace(0, 1, 6), yticks=np.linspace(0, 1, 6))
    axes.set(xlabel="clean twins flagged: false alarms (%)", ylabel="perturbed steps detected (%)")
    axes.grid(True, axis="both")
    layout.in_percent(axes.xaxis)
    layout.in_percent(axes.yaxis)
    layout.legend(figure, layout.line_handles(looks))
    layout.note(
        figure,
        notes.counted(detection),
        notes.unanswered(detection, looks),
        "thin lines: other thresholds on the confidence",
        "dotted: flagging at random",
        notes.INTERVALS,
    )
    return figure


@styled
def ablation(
    frames: Mapping[str, pd.DataFrame], *, looks: Looks | None = None, draws: int = DRAWS, rng: Rng = 0
) -> Figure:
    """Steps flagged by what a judge was shown: perturbed steps above, clean twins below, a group a judge [+].

    Parameters
    ----------
    frames : mapping
        Verdict frames by task: detection, and one or both of its ablations. Judges without an ablation are left
        out. A non-answer counts as not flagged.
    looks, draws, rng
        As in `fig2a_detection`.
    """
    shown = {task: frames[task] for task in _CONDITIONS if task in frames}
    asked = pd.concat([frame for task, frame in shown.items() if task != "detection"])
    looks = style.present(asked, looks)
    if not looks:
        return layout.empty("No judge was asked with less context")
    tables = {task: metrics.detection(frame, draws=draws, rng=rng) for task, frame in shown.items()}
    figure, grid = layout.canvas(PAGE if len(looks) > 3 else COLUMN, 3.4, 2, 1, sharex=True, sharey=True)
    at, width = np.arange(len(looks)), 0.78 / len(shown)
    labels = {"detection": "perturbed steps\nflagged (%)", "false_alarm": "clean twins\nflagged (%)"}
    for axes, (name, label) in zip(grid, labels.items(), strict=True):
        for (task, table), offset in zip(tables.items(), layout.dodge(len(shown), width), strict=True):
            rates = column(table, name, looks)
            axes.bar(at + offset, rates["value"], width, **_CONDITIONS[task])
            layout.whiskers(axes, at + offset, rates)
        axes.set(ylabel=label, ylim=(0, 1.03), yticks=np.linspace(0, 1, 6))
        layout.in_percent(axes.yaxis)
    grid[1].set_xticks(at, [look.label for look in looks.values()], rotation=20 if len(looks) > 3 else 0)
    layout.legend(figure, [Patch(**_CONDITIONS[task]) for task in shown])
    few = shown.get("shuffled", shown["detection"])["item_id"].nunique()
    skipped = shown["detection"]["item_id"].nunique() - few
    layout.note(
        figure,
        notes.counted(shown["detection"]),
        f"shuffled: {skipped} items with fewer than two steps to shuffle are not asked" if skipped else "",
        notes.unanswered(asked, looks),
        notes.INTERVALS,
    )
    return figure


def _roc(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """False-alarm and detection rates over the falling thresholds of the confidence; empty if there is none."""
    rows = rows[rows["confidence"].notna()]
    flagged = rows.groupby("confidence")["truth"].value_counts().unstack(fill_value=0)[::-1].cumsum()
    if not {0, 1} <= set(flagged.columns):
        return np.array([]), np.array([])
    shares = flagged / flagged.iloc[-1]
    return np.append(0, shares[1]), np.append(0, shares[0])


@styled
def calibration(
    frame: pd.DataFrame, task: str = "detection", *, looks: Looks | None = None, draws: int = DRAWS, rng: Rng = 0
) -> Figure:
    """Reliability curve: how often something is wrong where a judge says so with a given confidence [+].

    One panel a judge that gives confidences: the share of wrong items in each of ten bins, with its 95% interval
    over chains, at the bin's mean confidence; the grey bars are the shares of items in the bins. Wrong items are
    half of all where each has its clean twin. ECE is the expected calibration error.

    Parameters
    ----------
    frame : DataFrame
        Verdict frame of `task`.
    task : {'detection', 'localization'}
    looks, draws, rng
        As in `fig2a_detection`.
    """
    looks = style.present(frame, looks)
    sure = style.present(frame[frame["confidence"].notna() & (frame["kind"] != "natural")], looks)
    if not sure:
        return layout.empty("No judge gives a confidence", PAGE)
    bins = metrics.reliability(frame, task, draws=draws, rng=rng)
    errors = column(metrics.calibration(frame, task, draws=draws, rng=rng), "ece", sure)
    figure, grid = layout.panels(sure, 1.6, "confidence that something is wrong", "share wrong (%)")
    for axes, (name, look) in zip(grid, sure.items(), strict=True):
        mine = bins[bins["judge_id"] == name]
        width = mine["bin_high"] - mine["bin_low"]
        axes.bar(mine["bin_low"], mine["n"] / mine["n"].sum(), width, align="edge", color=FAINT, linewidth=0)
        axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.7, linestyle=":")
        shares = mine[["wrong_low", "wrong_high"]].set_axis(["low", "high"], axis=1)
        layout.whiskers(axes, mine["confidence"], shares, color=look.colour)
        axes.plot(mine["confidence"], mine["wrong"], **look.line)
        error = errors.loc[name]
        text = f"ECE {error['value']:.2f} [{error['low']:.2f}, {error['high']:.2f}]\nn = {mine['n'].sum()}"
        axes.text(0.03, 0.97, text, transform=axes.transAxes, va="top", fontsize=6)
    grid[0].set(xlim=(0, 1), ylim=(0, 1.03), xticks=np.linspace(0, 1, 6), yticks=np.linspace(0, 1, 6))
    layout.in_percent(grid[0].yaxis)
    without = [look.label for name, look in looks.items() if name not in sure]
    layout.note(
        figure,
        "grey bars: share of items (%)",
        f"no confidence: {', '.join(without)}" if without else "",
        "dotted: calibrated",
        notes.INTERVALS,
    )
    return figure
