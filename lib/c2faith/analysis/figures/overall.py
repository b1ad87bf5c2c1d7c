"""Figures across tasks and judges: 4 the radar, 8 which judges miss what; calibration; any task's headline."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from c2faith.analysis import metrics
from c2faith.analysis.figures import layout
from c2faith.analysis.figures.layout import INTERVALS, counted, note, unanswered, undefined
from c2faith.analysis.figures.registry import ENDS, column, figure, having, headlines, kept, rates, shown
from c2faith.analysis.figures.style import COLUMN, FAINT, INK, MUTED, PAGE, Look, Looks
from c2faith.analysis.metrics import Measured
from c2faith.judging.tasks import TASKS

CAPABILITIES = {
    "Exp 1\ndetection": "E1 det.",
    "Exp 2\nexact match": "E2\nexact",
    "Exp 2\ndetection": "E2 det.",
    "coverage\nwithin 1": "C within 1",
    "coverage\n1 − MAE/4": "C\nMAE",
}
"""The axes of the radar: their names, and shorter ones where each judge has a radar of its own."""
_ANGLES = np.arange(len(CAPABILITIES)) * 2 * np.pi / len(CAPABILITIES)
RADARS_A_ROW = 4
TOP_SCORE = 4
UPSET_FROM = 4
MOST_PATTERNS = 16


@figure("Five capabilities, from 0 (centre) to 1.", any_of=("detection", "localization", "coverage"))
def fig4_radar(measured: Measured, looks: Looks) -> Figure:
    """Fig. 4: five capabilities of each judge in [0, 1], further out is better.

    Exp 1 detection; Exp 2 exact match and detection; coverage scores within 1 of the reference; 1 − MAE/4 of
    coverage. An unanswered item is wrong, except for the MAE, which is of answered items. The d = 0 control is
    left out. Where a judge or run lacks a task its line has a gap.
    """
    tasks = [task for task in ("detection", "localization", "coverage") if task in measured.verdicts]
    frames = {task: kept(measured, task, looks, "perturbed") for task in tasks}
    frames = {task: frame for task, frame in frames.items() if len(frame)}
    if not frames:
        raise layout.NothingToDraw("No verdicts to compare")
    looks = having(pd.concat(frames.values()), looks)
    capabilities = _capabilities(measured, frames, looks)
    lines = {name: layout.of_judge(capabilities, name) for name in looks}
    polar, together = {"projection": "polar"}, len(looks) <= layout.MOST_TOGETHER
    if together:
        picture, axes = layout.canvas(COLUMN, 3.3, subplot_kw=polar)
        _spokes(axes, list(CAPABILITIES))
        for (name, look), offset in zip(looks.items(), layout.dodge(len(looks), 0.22 / len(looks)), strict=True):
            _web(axes, lines[name], offset, look)
        layout.legend(picture, layout.line_handles(looks))
    else:
        rows = -(-len(looks) // RADARS_A_ROW)
        picture, grid = layout.canvas(PAGE, 1.65 * rows, rows, RADARS_A_ROW, subplot_kw=polar)
        for spare in grid.flat[len(looks) :]:
            spare.set_visible(False)
        for axes, (name, look) in zip(grid.flat, looks.items(), strict=False):
            _spokes(axes, list(CAPABILITIES.values()))
            axes.set_title(look.label)
            _web(axes, lines[name], 0, look)
    sizes = {task: layout.spread(frame["judge_id"].value_counts()) for task, frame in frames.items()}
    about = "n a judge: " + ", ".join(f"{task} {n}" for task, n in sizes.items())
    short = "" if together else "E1: Exp 1, E2: Exp 2, C: coverage (within 1, 1 − MAE/4)"
    return note(picture, about, short, undefined(*capabilities), INTERVALS)


def _spokes(axes: Axes, names: Sequence[str]) -> None:
    """The five axes of the radar, named outside their ends."""
    axes.set(theta_offset=np.pi / 2, theta_direction=-1, ylim=(0, 1.02))
    axes.set_xticks(_ANGLES, names, fontsize=6)
    for label, angle in zip(axes.get_xticklabels(), _ANGLES, strict=True):
        side = np.sin(angle)
        label.set_horizontalalignment("center" if abs(side) < 0.1 else "left" if side > 0 else "right")
    axes.tick_params(axis="x", pad=-1)
    axes.set_yticks([0.25, 0.5, 0.75, 1], ["", "0.5", "", "1"], color=MUTED, fontsize=5.5)
    axes.set_rlabel_position(36)
    axes.grid(True, axis="both")
    axes.spines["polar"].set_visible(False)


def _web(axes: Axes, estimates: pd.DataFrame, offset: float, look: Look) -> None:
    """One judge's closed line with its intervals, moved by `offset` radians."""
    axes.plot([*_ANGLES, _ANGLES[0]], [*estimates["value"], estimates["value"][0]], **look.line)
    layout.whiskers(axes, _ANGLES + offset, estimates, color=look.colour)


def _capabilities(measured: Measured, frames: dict[str, pd.DataFrame], looks: Looks) -> list[pd.DataFrame]:
    """The estimates on the five axes, NaN where a task's frame or the reference is missing."""
    found = [pd.DataFrame(np.nan, list(looks), ENDS) for _ in CAPABILITIES]
    if "detection" in frames:
        found[0] = column(measured.of("detection", "detection"), "detection", looks)
    if "localization" in frames:
        table = measured.of("localization", "localization")
        found[1:3] = column(table, "exact", looks), column(table, "detection", looks)
    if "coverage" in frames:
        frame = frames["coverage"]
        miss = (frame["value"] - frame["reference"]).abs()
        found[3] = rates(measured, frame, looks, miss <= 1, frame["reference"].notna())
        found[4] = rates(measured, frame, looks, 1 - miss / TOP_SCORE, miss.notna())
    return found


@figure("Exp 1: which judges miss which perturbed steps.", "detection")
def fig8_failures(measured: Measured, looks: Looks) -> Figure:
    """Fig. 8: how many perturbed steps are missed by exactly which judges.

    Up to three judges the patterns are named; from four on a matrix under the bars marks the judges that miss
    (an UpSet plot), and patterns beyond the 16 most frequent share the last bar. An unanswered item counts as
    missed; items that not all judges were asked are left out.

    References
    ----------
    Lex et al. (2014), UpSet: visualization of intersecting sets.
    """
    bad, looks = shown(measured, "detection", looks, "perturbed")
    patterns = metrics.failure_patterns(bad)
    if patterns.empty:
        raise layout.NothingToDraw("No perturbed step was put to every judge")
    missed = [tuple(each.split(" + ")) if each else () for each in patterns["missed_by"]]
    draw = _named_bars if len(looks) < UPSET_FROM else _upset
    picture = draw(missed, patterns["count"].to_numpy(), looks)
    asked, compared = bad["item_id"].nunique(), int(patterns["count"].sum())
    about = f"n = {compared} perturbed steps put to every judge" + (f" of {asked}" if asked > compared else "")
    return note(
        picture, about, unanswered(bad, looks) + (", counted as missed" if bad["value"].isna().any() else "")
    )


def _colour(who: tuple[str, ...], looks: Looks) -> dict[str, object]:
    """A judge's own look where it alone misses; light for nobody, dark for several."""
    if len(who) == 1:
        return looks[who[0]].bar
    return {"facecolor": MUTED if who else FAINT, "edgecolor": INK if not who else "white"}


def _named_bars(missed: list[tuple[str, ...]], counts: np.ndarray, looks: Looks) -> Figure:
    picture, axes = layout.canvas(COLUMN, 0.9 + 0.27 * len(missed))
    for row, (who, count) in enumerate(zip(missed, counts, strict=True)):
        axes.barh(row, count, 0.7, **_colour(who, looks))
        text = f"{count} ({100 * count / counts.sum():.1f}%)"
        axes.text(count + counts.max() * 0.015, row, text, va="center", fontsize=6)
    axes.set_yticks(range(len(missed)), [_words(who, looks) for who in missed])
    axes.set(xlabel="perturbed steps", xlim=(0, counts.max() * 1.35), ylim=(len(missed) - 0.5, -0.5))
    axes.grid(axis="x")
    axes.grid(False, axis="y")
    return picture


def _words(who: tuple[str, ...], looks: Looks) -> str:
    several = " by all" if len(looks) > 1 else ""
    if len(who) in (0, len(looks)):
        return ("missed" if who else "caught") + several
    names = " and ".join(looks[name].label for name in who)
    words = f"missed only by {names}" if len(who) == 1 else f"missed by {names}"
    return textwrap.fill(words, 26, break_long_words=False, break_on_hyphens=False)


def _upset(missed: list[tuple[str, ...]], counts: np.ndarray, looks: Looks) -> Figure:
    misses = {name: sum(count for who, count in zip(missed, counts, strict=True) if name in who) for name in looks}
    rest = counts[MOST_PATTERNS:]
    missed, counts = missed[:MOST_PATTERNS], counts[:MOST_PATTERNS]
    names, height = list(looks), 0.17 * len(looks)
    ratios = {"height_ratios": [1.6, height]}
    picture, (bars, matrix) = layout.canvas(PAGE, 2.0 + height, 2, 1, sharex=True, gridspec_kw=ratios)
    for at, (who, count) in enumerate(zip(missed, counts, strict=True)):
        bars.bar(at, count, 0.7, **_colour(who, looks))
        matrix.scatter([at] * len(names), range(len(names)), s=14, color=FAINT, linewidths=0)
        rows = [names.index(name) for name in who]
        matrix.scatter([at] * len(rows), rows, s=16, color=[looks[name].colour for name in who], linewidths=0)
        matrix.vlines(at, min(rows, default=0), max(rows, default=0), color=MUTED, linewidth=1, zorder=0.5)
    heights = [*counts]
    if len(rest):  # all patterns that are not shown one by one
        at = len(heights)
        heights.append(rest.sum())
        bars.bar(at, rest.sum(), 0.7, facecolor="white", edgecolor=MUTED, hatch="////", hatchcolor=FAINT)
        matrix.text(at, 0, f"{len(rest)}\nrarer\npatterns", ha="center", va="top", fontsize=6, color=MUTED)
    for at, count in enumerate(heights):
        bars.text(at, count, f" {count}", ha="center", va="bottom", fontsize=6)
    bars.set(ylabel="perturbed steps", ylim=(0, max(heights) * 1.1), xlim=(-0.6, len(heights) - 0.4))
    matrix.set_yticks(range(len(names)), [f"{looks[name].label} ({misses[name]})" for name in names])
    matrix.set(ylim=(len(names) - 0.5, -0.5), xlabel="who misses (how many steps in all)")
    matrix.set_xticks([])
    matrix.grid(False)
    matrix.spines[:].set_visible(False)
    matrix.tick_params(length=0)
    return picture


@figure(
    "Exp 2: do confidences mean what they say?",
    "localization",
    name="calibration_localization",
    task="localization",
)
@figure("Exp 1: do confidences mean what they say?", "detection", name="calibration_detection")
def calibration(measured: Measured, looks: Looks, *, task: str = "detection") -> Figure:
    """Reliability curve: how often something is wrong where a judge says so with a given confidence [+].

    One panel a judge that gives confidences: the share of wrong items in each of ten bins, with its 95% interval
    over chains, at the bin's mean confidence; the grey bars are the shares of items in the bins. Wrong items are
    half of all where each has its clean twin. ECE is the expected calibration error.
    """
    frame, looks = shown(measured, task, looks)
    sure = having(frame[frame["confidence"].notna() & (frame["kind"] != "natural")], looks)
    if not sure:
        raise layout.NothingToDraw("No judge gives a confidence")
    bins = measured.of("reliability", task, task=task)
    errors = column(measured.of("calibration", task, task=task), "ece", sure)
    picture, grid = layout.panels(sure, 1.6, "confidence that something is wrong", "share wrong (%)")
    for axes, (name, look) in zip(grid, sure.items(), strict=True):
        mine = bins[bins["judge_id"] == name]
        width = mine["bin_high"] - mine["bin_low"]
        axes.bar(mine["bin_low"], mine["n"] / mine["n"].sum(), width, align="edge", color=FAINT, linewidth=0)
        axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.7, linestyle=":")
        ends = mine[["wrong_low", "wrong_high"]].set_axis(["low", "high"], axis=1)
        layout.whiskers(axes, mine["confidence"], ends, color=look.colour)
        axes.plot(mine["confidence"], mine["wrong"], **look.line)
        error = errors.loc[name]
        text = f"ECE {error['value']:.2f} [{error['low']:.2f}, {error['high']:.2f}]\nn = {mine['n'].sum()}"
        axes.text(0.03, 0.97, text, transform=axes.transAxes, va="top", fontsize=6)
    layout.shares(grid[0])
    grid[0].set(xlim=(0, 1), xticks=np.linspace(0, 1, 6))
    without = [look.label for name, look in looks.items() if name not in sure]
    silent = f"no confidence: {', '.join(without)}" if without else ""
    return note(picture, "grey bars: share of items (%)", silent, "dotted: calibrated", INTERVALS)


def headline(measured: Measured, looks: Looks, *, task: str) -> Figure:
    """The number that says what a judge is worth at a task, with its interval: of tasks that no figure is about."""
    frame, looks = shown(measured, task, looks)
    found = headlines(measured, task).reindex(list(looks))
    picture, axes = layout.canvas(COLUMN, 1.0 + 0.2 * len(looks))
    for row, (name, look) in enumerate(looks.items()):
        layout.whiskers(axes, [row], found.loc[[name]], vertical=False, color=look.colour)
        axes.plot(found["value"][name], row, **look.line)
    axes.set_yticks(range(len(looks)), [look.label for look in looks.values()])
    axes.set(xlabel=TASKS[task].headline.replace("_", " "), ylim=(len(looks) - 0.5, -0.5))
    axes.grid(axis="x")
    return note(picture, counted(frame), unanswered(frame, looks), undefined(found), INTERVALS)
