"""Figures across tasks and judges: 4 the capability radar, 8 which judges miss which perturbed steps."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from c2faith.analysis import metrics
from c2faith.analysis.figures import layout, notes, style
from c2faith.analysis.figures.estimates import ENDS, by_judge, column
from c2faith.analysis.figures.style import COLUMN, FAINT, INK, MUTED, PAGE, Look, Looks, Rng, styled
from c2faith.analysis.resampling import DRAWS, Resamples

CAPABILITIES = (
    "Exp 1\ndetection",
    "Exp 2\nexact match",
    "Exp 2\ndetection",
    "coverage\nwithin 1",
    "coverage\n1 − MAE/4",
)
ABBREVIATED = ("E1 det.", "E2\nexact", "E2 det.", "C within 1", "C\nMAE")
_ANGLES = np.arange(len(CAPABILITIES)) * 2 * np.pi / len(CAPABILITIES)
RADARS_A_ROW = 4
TOP_SCORE = 4
UPSET_FROM = 4
MOST_PATTERNS = 16


@styled
def fig4_radar(
    frames: Mapping[str, pd.DataFrame], *, looks: Looks | None = None, draws: int = DRAWS, rng: Rng = 0
) -> Figure:
    """Fig. 4: five capabilities of each judge in [0, 1], further out is better.

    Exp 1 detection; Exp 2 exact match and detection; coverage scores within 1 of the reference; 1 − MAE/4 of
    coverage. An unanswered item is wrong, except for the MAE, which is of answered items. The d = 0 control is
    left out. Where a judge lacks a capability its line has a gap.

    Parameters
    ----------
    frames : mapping
        Verdict frames by task: ``detection``, ``localization``, ``coverage``; missing ones leave gaps.
    looks, draws, rng
        As in `fig2a_detection`.
    """
    tasks = {task: frames[task] for task in ("detection", "localization", "coverage") if task in frames}
    tasks = {task: frame[frame["kind"] == "perturbed"] for task, frame in tasks.items()}
    tasks = {task: frame for task, frame in tasks.items() if len(frame)}
    if not tasks:
        return layout.empty("No verdicts to compare")
    looks = style.present(pd.concat(tasks.values()), looks)
    capabilities = _capabilities(tasks, looks, draws, rng)
    lines = {name: layout.of_judge(capabilities, name) for name in looks}
    if len(looks) <= layout.MOST_TOGETHER:
        figure, axes = layout.canvas(COLUMN, 3.3, subplot_kw={"projection": "polar"})
        _spokes(axes, CAPABILITIES)
        for (name, look), offset in zip(looks.items(), layout.dodge(len(looks), 0.22 / len(looks)), strict=True):
            _web(axes, lines[name], offset, look)
        layout.legend(figure, layout.line_handles(looks))
    else:
        rows = -(-len(looks) // RADARS_A_ROW)
        figure, grid = layout.canvas(PAGE, 1.65 * rows, rows, RADARS_A_ROW, subplot_kw={"projection": "polar"})
        for spare in grid.flat[len(looks) :]:
            spare.set_visible(False)
        for axes, (name, look) in zip(grid.flat, looks.items(), strict=False):
            _spokes(axes, ABBREVIATED)
            axes.set_title(look.label)
            _web(axes, lines[name], 0, look)
    sizes = {task: notes.spread(frame["judge_id"].value_counts()) for task, frame in tasks.items()}
    layout.note(
        figure,
        "n a judge: " + ", ".join(f"{task} {n}" for task, n in sizes.items()),
        "" if len(looks) <= layout.MOST_TOGETHER else "E1: Exp 1, E2: Exp 2, C: coverage (within 1, 1 − MAE/4)",
        notes.undefined(pd.concat(capabilities)),
        notes.INTERVALS,
    )
    return figure


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


def _capabilities(tasks: Mapping[str, pd.DataFrame], looks: Looks, draws: int, rng: Rng) -> list[pd.DataFrame]:
    """The estimates on the five axes, NaN where a task's frame or the reference is missing."""
    found = [pd.DataFrame(np.nan, list(looks), ENDS) for _ in CAPABILITIES]
    if "detection" in tasks:
        found[0] = column(metrics.detection(tasks["detection"], draws=draws, rng=rng), "detection", looks)
    if "localization" in tasks:
        table = metrics.localization(tasks["localization"], draws=draws, rng=rng)
        found[1:3] = column(table, "exact", looks), column(table, "detection", looks)
    if "coverage" in tasks:
        frame = tasks["coverage"]
        resamples = Resamples.draw(frame["chain_id"], draws, rng)
        miss = (frame["value"] - frame["reference"]).abs()
        found[3] = by_judge(frame, miss <= 1, looks, resamples, among=frame["reference"].notna())
        found[4] = by_judge(frame, 1 - miss / TOP_SCORE, looks, resamples, among=miss.notna())
    return found


@styled
def fig8_failures(detection: pd.DataFrame, *, looks: Looks | None = None) -> Figure:
    """Fig. 8: how many perturbed steps are missed by exactly which judges.

    Up to three judges the patterns are named; from four on a matrix under the bars marks the judges that miss
    (an UpSet plot), and patterns beyond the 16 most frequent share the last bar. An unanswered item counts as
    missed; items that not all judges were asked are left out.

    References
    ----------
    Lex et al. (2014), UpSet: visualization of intersecting sets.
    """
    bad = detection[detection["kind"] == "perturbed"]
    looks = style.present(bad, looks)
    patterns = metrics.failure_patterns(bad) if looks else pd.DataFrame()
    if patterns.empty:
        return layout.empty("No perturbed step was put to every judge", PAGE)
    missed = [tuple(each.split(" + ")) if each else () for each in patterns["missed_by"]]
    draw = _named_bars if len(looks) < UPSET_FROM else _upset
    figure = draw(missed, patterns["count"].to_numpy(), looks)
    asked = bad["item_id"].nunique()
    compared = int(patterns["count"].sum())
    layout.note(
        figure,
        f"n = {compared} perturbed steps put to every judge" + (f" of {asked}" if asked > compared else ""),
        notes.unanswered(bad, looks) + (", counted as missed" if bad["value"].isna().any() else ""),
    )
    return figure


def _colour(who: tuple[str, ...], looks: Looks) -> dict[str, object]:
    """A judge's own look where it alone misses; light for nobody, dark for several."""
    if len(who) == 1:
        return looks[who[0]].bar
    return {"facecolor": MUTED if who else FAINT, "edgecolor": INK if not who else "white"}


def _named_bars(missed: list[tuple[str, ...]], counts: np.ndarray, looks: Looks) -> Figure:
    figure, axes = layout.canvas(COLUMN, 0.9 + 0.27 * len(missed))
    for row, (who, count) in enumerate(zip(missed, counts, strict=True)):
        axes.barh(row, count, 0.7, **_colour(who, looks))
        axes.text(
            count + counts.max() * 0.015,
            row,
            f"{count} ({100 * count / counts.sum():.1f}%)",
            va="center",
            fontsize=6,
        )
    axes.set_yticks(range(len(missed)), [_words(who, looks) for who in missed])
    axes.set(xlabel="perturbed steps", xlim=(0, counts.max() * 1.35), ylim=(len(missed) - 0.5, -0.5))
    axes.grid(axis="x")
    axes.grid(False, axis="y")
    return figure


def _words(who: tuple[str, ...], looks: Looks) -> str:
    if not who:
        return "caught by all" if len(looks) > 1 else "caught"
    if len(who) == len(looks):
        return "missed by all" if len(looks) > 1 else "missed"
    names = " and ".join(looks[name].label for name in who)
    words = f"missed only by {names}" if len(who) == 1 else f"missed by {names}"
    return textwrap.fill(words, 26, break_long_words=False, break_on_hyphens=False)


def _upset(missed: list[tuple[str, ...]], counts: np.ndarray, looks: Looks) -> Figure:
    misses = {name: sum(count for who, count in zip(missed, counts, strict=True) if name in who) for name in looks}
    rest = counts[MOST_PATTERNS:]
    missed, counts = missed[:MOST_PATTERNS], counts[:MOST_PATTERNS]
    names = list(looks)
    figure, (bars, matrix) = layout.canvas(
        PAGE, 2.0 + 0.17 * len(names), 2, 1, sharex=True, gridspec_kw={"height_ratios": [1.6, 0.17 * len(names)]}
    )
    for at, (who, count) in enumerate(zip(missed, counts, strict=True)):
        bars.bar(at, count, 0.7, **_colour(who, looks))
        matrix.scatter([at] * len(names), range(len(names)), s=14, color=FAINT, linewidths=0)
        rows = [names.index(name) for name in who]
        matrix.scatter([at] * len(rows), rows, s=16, color=[looks[name].colour for name in who], linewidths=0)
        matrix.vlines(at, min(rows, default=0), max(rows, default=0), color=MUTED, linewidth=1, zorder=0.5)
    _gather(bars, matrix, len(missed), rest)
    shown = [*counts, *([rest.sum()] if len(rest) else [])]
    for at, count in enumerate(shown):
        bars.text(at, count, f" {count}", ha="center", va="bottom", fontsize=6)
    bars.set(ylabel="perturbed steps", ylim=(0, max(shown) * 1.1), xlim=(-0.6, len(shown) - 0.4))
    matrix.set_yticks(range(len(names)), [f"{looks[name].label} ({misses[name]})" for name in names])
    matrix.set(ylim=(len(names) - 0.5, -0.5), xlabel="who misses (how many steps in all)")
    matrix.set_xticks([])
    matrix.grid(False)
    matrix.spines[:].set_visible(False)
    matrix.tick_params(length=0)
    return figure


def _gather(bars: Axes, matrix: Axes, at: int, rest: np.ndarray) -> None:
    """The last bar: all patterns that are not shown one by one."""
    if len(rest):
        bars.bar(at, rest.sum(), 0.7, facecolor="white", edgecolor=MUTED, hatch="////", hatchcolor=FAINT)
        matrix.text(at, 0, f"{len(rest)}\nrarer\npatterns", ha="center", va="top", fontsize=6, color=MUTED)
