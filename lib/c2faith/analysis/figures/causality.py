"""Figures of causality. Exp 1, detection: 2a, 7, false alarms, ablations. Exp 2, localization: 2b, 5, 6."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from c2faith.analysis.figures import layout
from c2faith.analysis.figures.layout import INTERVALS, counted, note, unanswered, undefined
from c2faith.analysis.figures.registry import column, figure, having, kept, rates, shown
from c2faith.analysis.figures.style import COLUMN, FAINT, INK, MUTED, PAGE, Looks
from c2faith.analysis.metrics import Measured

POSITION_BINS = 5
_CONDITIONS: Mapping[str, dict[str, Any]] = {
    "detection": {"label": "full context", "facecolor": MUTED, "edgecolor": INK},
    "step_only": {"label": "the step alone", "facecolor": "white", "edgecolor": INK, "hatch": "////"},
    "shuffled": {"label": "earlier steps shuffled", "facecolor": FAINT, "edgecolor": INK, "hatch": "...."},
}
WITHIN_MOST = 5
ERROR_REACH = 6
_MOST_PRINTED = 6
_METRICS = {
    "exact": "exact match",
    "detection": "detected",
    "within_1": "within 1\nof detected",
    "within_2": "within 2\nof detected",
    "clean_accuracy": "clean chain\naccepted",
}


@figure("Exp 1: perturbed steps detected, and clean twins flagged.", "detection")
def fig2a_detection(measured: Measured, looks: Looks) -> Figure:
    """Fig. 2a: share of perturbed steps that each judge flags, and of clean twins that it flags too [+].

    An unanswered item counts as not flagged.
    """
    frame, looks = shown(measured, "detection", looks)
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
    return note(picture, counted(frame), alone, unanswered(frame, looks), INTERVALS)


@figure("Exp 1: detection by the step's position in its chain.", "detection")
def fig7_position(measured: Measured, looks: Looks) -> Figure:
    """Fig. 7: detection rate by relative position of the perturbed step, in 5 bins of equal width.

    The position is target / chain length, so 0 is the first step; the bins span the positions that occur.
    """
    bad, looks = shown(measured, "detection", looks, "perturbed")
    position = bad["target"] / bad["n_steps"]
    edges = np.histogram_bin_edges(position, POSITION_BINS)
    cell = np.clip(np.searchsorted(edges, position, side="right") - 1, 0, POSITION_BINS - 1)
    found = [rates(measured, bad, looks, bad["value"] == 0, cell == b) for b in range(POSITION_BINS)]
    counts = [bad.loc[cell == b, "item_id"].nunique() for b in range(POSITION_BINS)]
    at, words = np.arange(POSITION_BINS), ("share of the chain before the step", "perturbed steps detected (%)")
    picture, grid = layout.curves(looks, at, found, *words, gap=0.6)
    spans = zip(edges, edges[1:], counts, strict=False)
    grid[0].set_xticks(at, [f"{low:.2f}–\n{high:.2f}\n({count})" for low, high, count in spans])
    layout.shares(grid[0])
    return note(picture, counted(bad), unanswered(bad, looks), undefined(*found), INTERVALS)


@figure("Exp 1: detection against false alarms.", "detection")
def false_alarm_plane(measured: Measured, looks: Looks) -> Figure:
    """Detection rate against false-alarm rate, a point with both intervals for each judge [+].

    On the diagonal a judge flags without reading; the upper left corner is perfect. The thin line of a judge with
    confidences is its ROC curve: what other thresholds on P(does not follow) would give.
    """
    frame, looks = shown(measured, "detection", looks)
    if not looks or not (frame["kind"] == "clean").any():
        raise layout.NothingToDraw("No clean twins: false alarms are unknown")
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
    return note(picture, counted(frame), unanswered(frame, looks), *lines, INTERVALS)


def _roc(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """False-alarm and detection rates over the falling thresholds of the confidence; empty if there is none."""
    rows = rows[rows["confidence"].notna()]
    flagged = rows.groupby("confidence")["truth"].value_counts().unstack(fill_value=0)[::-1].cumsum()
    if not {0, 1} <= set(flagged.columns):
        return np.array([]), np.array([])
    found = flagged / flagged.iloc[-1]
    return np.append(0, found[1]), np.append(0, found[0])


@figure(
    "Exp 1: what is flagged with the full context, without it, and with it shuffled.",
    "detection",
    any_of=("step_only", "shuffled"),
)
def ablation(measured: Measured, looks: Looks) -> Figure:
    """Steps flagged by what a judge was shown: perturbed steps above, clean twins below, a group a judge [+].

    Judges without an ablation are left out. A non-answer counts as not flagged.
    """
    conditions = [task for task in _CONDITIONS if task in measured.verdicts]
    frames = {task: kept(measured, task, looks) for task in conditions}
    asked = pd.concat([frame for task, frame in frames.items() if task != "detection"])
    looks = having(asked, looks)
    if not looks:
        raise layout.NothingToDraw("No judge was asked with less context")
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
    return note(picture, counted(frames["detection"]), few, unanswered(asked, looks), INTERVALS)


@figure("Exp 2: localization metrics.", "localization")
def fig2b_localization(measured: Measured, looks: Looks) -> Figure:
    """Fig. 2b: localization metrics side by side, in percent with 95% intervals over chains.

    Exact match and detection are shares of all perturbed items; within 1 and within 2 are shares of the items
    where the judge named a step; clean accuracy [+] is the share of clean twins answered −1.
    """
    injected, looks = shown(measured, "localization", looks, "perturbed", "clean")
    table = measured.of("localization", "localization")
    names = list(_METRICS) if table["n_clean"].any() else [name for name in _METRICS if name != "clean_accuracy"]
    estimates = [column(table, name, looks) for name in names]
    picture, axes = layout.canvas(PAGE, 2.6)
    width = min(0.86 / len(looks), 0.3)
    for (name, look), offset in zip(looks.items(), layout.dodge(len(looks), width), strict=True):
        at, found = np.arange(len(names)) + offset, layout.of_judge(estimates, name)
        axes.bar(at, found["value"], width, **look.bar)
        layout.whiskers(axes, at, found)
        if len(looks) <= _MOST_PRINTED:
            for x, rate in zip(at, found.itertuples(), strict=True):
                place = {"x": x, "y": np.nanmax([rate.high, rate.value, 0]) + 0.015, "ha": "center"}
                layout.print_rate(axes, rate.value, digits=0, **place)
    axes.set(xticks=range(len(names)), xticklabels=[_METRICS[name] for name in names])
    layout.shares(axes, limits=(0, 1.1))
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("share of items (%)")
    layout.legend(picture, layout.bar_handles(looks))
    return note(picture, counted(injected), unanswered(injected, looks), undefined(*estimates), INTERVALS)


@figure("How near the named step lies to the true one.", "localization")
def fig5_within_k(measured: Measured, looks: Looks) -> Figure:
    """Fig. 5: share of detected perturbed chains whose named step lies within k of the true one, k = 0 … 5.

    At the right stands each judge's detection rate, a step named, over all perturbed items.
    """
    bad, looks = shown(measured, "localization", looks, "perturbed")
    miss, named = (bad["value"] - bad["target"]).abs(), _named_step(bad)
    found = [rates(measured, bad, looks, miss <= k, named) for k in range(WITHIN_MOST + 1)]
    found += [found[0] * np.nan, rates(measured, bad, looks, named)]  # NaN: no line between the two
    at = np.append(np.arange(WITHIN_MOST + 1), [WITHIN_MOST + 0.5, WITHIN_MOST + 1])
    words = "distance k to the true step (steps)", "within k, of detected (%)"
    picture, grid = layout.curves(looks, at, found, *words, gap=0.6)
    for axes in grid:
        axes.axvspan(WITHIN_MOST + 0.5, WITHIN_MOST + 1.5, color=FAINT, alpha=0.5, linewidth=0)
    grid[0].set_xticks(range(WITHIN_MOST + 2), [*map(str, range(WITHIN_MOST + 1)), "step\nnamed"])
    grid[0].set_xlim(-0.5, WITHIN_MOST + 1.5)
    layout.shares(grid[0])
    detected = f"detected {layout.spread(named.groupby(bad['judge_id']).sum())}"
    about = detected, "step named: detection rate over all items"
    return note(picture, counted(bad), *about, unanswered(bad, looks), undefined(found[0]), INTERVALS)


@figure("On which side of the true step the named one lies.", "localization")
def fig6_signed_error(measured: Measured, looks: Looks) -> Figure:
    """Fig. 6: signed error of the named step, ĵ − j in steps, over detected perturbed chains, a panel a judge.

    Bars are shares of each error, those beyond ±6 gathered in the outer ones; the diamond is the mean with its
    95% interval over chains, the tick [+] the mean that wrong picks would have if they fell evenly on the other
    steps of their chain. Left of 0 a judge points too early.
    """
    bad, looks = shown(measured, "localization", looks, "perturbed")
    table = measured.of("localization", "localization")
    means, nulls = column(table, "signed_error", looks), table.set_index("judge_id")["signed_null"]
    error = (bad["value"] - bad["target"]).where(_named_step(bad))
    picture, panels = layout.panels(looks, 1.3, "signed error ĵ − j (steps)", "share of detected (%)")
    bins = np.arange(-ERROR_REACH, ERROR_REACH + 1)
    highest = 0.1
    for (name, look), axes in zip(looks.items(), panels, strict=True):
        errors = error[bad["judge_id"] == name].dropna().clip(-ERROR_REACH, ERROR_REACH)
        axes.set_title(f"{look.label} (n = {len(errors)})")
        if errors.empty:
            layout.says(axes, "named no step")
            continue
        shares = errors.value_counts(normalize=True).reindex(bins, fill_value=0)
        axes.bar(bins, shares, 0.9, **look.bar)
        highest = max(highest, shares.max())
        axes.axvline(0, color=MUTED, linewidth=0.8, linestyle=":")
        _mark_mean(axes, means.loc[[name]], nulls[name])
    panels[0].set(xlim=(-ERROR_REACH - 0.7, ERROR_REACH + 0.7), ylim=(0, 1.4 * highest), xticks=bins[::2])
    panels[0].set_xticklabels([f"≤−{ERROR_REACH}", "−4", "−2", "0", "2", "4", f"≥{ERROR_REACH}"])
    layout.in_percent(panels[0].yaxis)
    marks = "◆ mean; | mean if wrong picks fell evenly on the other steps"
    return note(picture, marks, counted(bad), unanswered(bad, looks), INTERVALS)


def _named_step(frame: pd.DataFrame) -> pd.Series:
    """Where a judge named a step: it answered, and not −1."""
    return frame["value"].notna() & (frame["value"] != -1)


def _mark_mean(axes: Axes, mean: pd.DataFrame, null: float) -> None:
    """A diamond near the top of a panel with its interval, in words at the right, and the null's tick."""
    height = axes.get_xaxis_transform()
    value, low, high = mean.iloc[0]
    layout.whiskers(axes, [0.93], mean, vertical=False, transform=height, linewidth=1.4)
    axes.plot(value, 0.93, marker="D", markersize=2.6, color=INK, transform=height)
    null = np.clip(null, -ERROR_REACH, ERROR_REACH)
    axes.plot(null, 0.93, marker="|", markersize=7, color=MUTED, transform=height)
    text = f"{value:+.2f}\n[{low:+.2f}, {high:+.2f}]".replace("-", "−")
    axes.text(ERROR_REACH + 0.6, 0.98, text, transform=height, ha="right", va="top", fontsize=6)
