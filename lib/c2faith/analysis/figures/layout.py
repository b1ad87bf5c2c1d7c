"""How figures are laid out: canvases, panels of judges, curves, legends, intervals, and the small print's words."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from c2faith.analysis.figures.style import COLUMN, FAINT, INK, MUTED, PAGE, Looks, Picture

MOST_TOGETHER = 6
"""Curves of more judges than these are drawn in a panel each."""
INTERVALS = "95% intervals, chains resampled"
_MOST_NAMED = 4


def canvas(width: float, height: float, rows: int = 1, columns: int = 1, **keywords: Any) -> tuple[Figure, Any]:
    """A figure of `width` × `height` inches outside pyplot's global list, and its axes."""
    figure = Picture(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **keywords)


def panels(drawn: Looks, height: float, xlabel: str, ylabel: str) -> tuple[Figure, list[Axes]]:
    """A grid with one titled panel a judge, axes shared; `height` inches a row (half as much more for one row)."""
    columns = 2 if len(drawn) == 4 else min(3, len(drawn))
    rows = -(-len(drawn) // columns)
    size = (PAGE if columns > 1 else COLUMN, 0.6 + height * (rows if rows > 1 else 1.5))
    figure, grid = canvas(*size, rows, columns, sharex=True, sharey=True, squeeze=False)
    flat = list(grid.flat)
    for spare in flat[len(drawn) :]:
        spare.set_visible(False)
        flat[flat.index(spare) - columns].tick_params(labelbottom=True)
    flat[min(len(drawn) - 1, (rows - 1) * columns + (columns - 1) // 2)].set_xlabel(xlabel)
    figure.supylabel(ylabel, fontsize=rcParams["axes.labelsize"])
    for axes, look in zip(flat, drawn.values(), strict=False):
        axes.set_title(look.label)
    return figure, flat[: len(drawn)]


def curves(
    drawn: Looks,
    at: np.ndarray,
    estimates: Sequence[pd.DataFrame],
    *labels: str,
    gap: float,
    handles: Sequence[Any] = (),
) -> tuple[Figure, list[Axes]]:
    """A line with intervals for each judge: side by side in one column, or from 7 judges on in a panel each.

    Each of the `estimates` (value, low, high by judge) stands at its place `at` on x, where the outermost judges'
    marks are moved `gap` apart so that intervals do not hide each other; `labels` are those of x and y, `handles`
    legend entries of what else will be drawn.
    """
    lines = {name: of_judge(estimates, name) for name in drawn}
    if len(drawn) <= MOST_TOGETHER:
        figure, axes = canvas(COLUMN, 2.8)
        axes.set(xlabel=labels[0], ylabel=labels[1])
        for (name, look), offset in zip(drawn.items(), dodge(len(drawn), gap / len(drawn)), strict=True):
            axes.plot(at + offset, lines[name]["value"], **look.line)
            whiskers(axes, at + offset, lines[name], color=look.colour)
        legend(figure, [*line_handles(drawn), *handles])
        return figure, [axes]
    figure, grid = panels(drawn, 1.25, *labels)
    for axes, (name, look) in zip(grid, drawn.items(), strict=True):
        for other in drawn:
            axes.plot(at, lines[other]["value"], color=FAINT, linewidth=0.8)
        axes.plot(at, lines[name]["value"], **look.line)
        whiskers(axes, at, lines[name], color=look.colour)
    legend(figure, handles)
    return figure, grid


def of_judge(estimates: Sequence[pd.DataFrame], name: str) -> pd.DataFrame:
    """One judge's row of each of several estimates, in their order."""
    return pd.DataFrame([each.loc[name] for each in estimates]).reset_index(drop=True)


class NothingToDraw(Exception):  # noqa: N818 - no error: the figure says it
    """Why a figure has nothing to show."""


def empty(message: str) -> Figure:
    """A figure that only says why there is nothing to draw."""
    figure, axes = canvas(COLUMN, 1.2)
    axes.set_axis_off()
    says(axes, message)
    return figure


def says(axes: Axes, message: str) -> None:
    """A word in the middle of axes that have nothing to show."""
    text = textwrap.fill(message, 44)
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=MUTED, style="italic")


def legend(figure: Figure, handles: Sequence[Any]) -> None:
    """One legend above all axes, as wide as the figure allows; none without handles."""
    if not handles:
        return
    widest = max(len(handle.get_label()) for handle in handles)
    columns = max(1, int(figure.get_figwidth() * 17 / (widest + 8)))
    rows = -(-len(handles) // columns)
    figure.legend(handles=list(handles), loc="outside upper center", ncols=-(-len(handles) // rows))


def bar_handles(drawn: Looks) -> list[Patch]:
    """Legend entries of filled shapes."""
    return [Patch(label=look.label, **look.bar) for look in drawn.values()]


def line_handles(drawn: Looks) -> list[Line2D]:
    """Legend entries of lines with markers."""
    return [Line2D([], [], label=look.label, **look.line) for look in drawn.values()]


def dodge(count: int, width: float) -> np.ndarray:
    """Offsets that lay `count` marks of `width` side by side around 0."""
    return (np.arange(count) - (count - 1) / 2) * width


def whiskers(axes: Axes, at: Any, estimates: pd.DataFrame, *, vertical: bool = True, **keywords: Any) -> None:
    """The `low` to `high` of estimates as thin lines; nothing where they are undefined."""
    known = estimates[["low", "high"]].notna().all(axis=1).to_numpy()
    low, high = (estimates.loc[known, end] for end in ("low", "high"))
    draw = axes.vlines if vertical else axes.hlines
    draw(np.asarray(at, dtype=float)[known], low, high, **{"color": INK, "linewidth": 0.9, **keywords})


def print_rate(axes: Axes, rate: float, digits: int, **place: Any) -> None:
    """A share in [0, 1] as a small percent number beside its bar; nothing where it is undefined."""
    if np.isfinite(rate):
        axes.text(s=f"{100 * rate:.{digits}f}", fontsize=6, **place)


def in_percent(axis: Any) -> None:
    """Print shares in [0, 1] as percent; the axis label says of what."""
    axis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=None))


def shares(axes: Axes, along: str = "y", limits: tuple[float, float] = (0, 1.03)) -> None:
    """An axis of shares in [0, 1], in percent."""
    axes.set(**{f"{along}lim": limits, f"{along}ticks": np.linspace(0, 1, 6)})
    in_percent(getattr(axes, f"{along}axis"))


def note(figure: Figure, *parts: str) -> Figure:
    """Small print under the figure, after what stands there: n, the unanswered, and what a reader must know."""
    figure.parts = (*getattr(figure, "parts", ()), *filter(None, parts))
    text = textwrap.fill(" · ".join(figure.parts), int(figure.get_figwidth() * 22))
    figure.supxlabel(text, x=0.01, ha="left", fontsize=5.8, color=MUTED)
    return figure


def counted(frame: pd.DataFrame) -> str:
    """Planned items a judge, by kind: ``n = 179 perturbed, 179 clean items a judge``."""
    counts = {kind: frame.loc[frame["kind"] == kind, "judge_id"] for kind in ("perturbed", "clean", "natural")}
    known = (f"{spread(judges.value_counts())} {kind}" for kind, judges in counts.items() if len(judges))
    return f"n = {', '.join(known)} items a judge"


def spread(counts: pd.Series) -> str:
    """One number if all are equal, else the least and the most."""
    least, most = int(counts.min()), int(counts.max())
    return str(least) if least == most else f"{least} to {most}"


def unanswered(frame: pd.DataFrame, drawn: Looks) -> str:
    """Items without an answer: by judge where few judges have any, else the range."""
    counts = frame["value"].isna().groupby(frame["judge_id"]).sum()
    silent = counts[counts > 0]
    if silent.empty:
        return "all answered"
    if len(silent) > _MOST_NAMED:
        return f"unanswered: {spread(counts)} a judge"
    return "unanswered: " + ", ".join(f"{drawn[name].label} {count}" for name, count in silent.items())


def undefined(*estimates: pd.DataFrame) -> str:
    """A word on estimates that do not exist, if there are any."""
    missing = any(each["value"].isna().any() for each in estimates)
    return "missing marks: undefined (nothing to divide by)" if missing else ""
