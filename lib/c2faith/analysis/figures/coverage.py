"""Figures of the coverage task: 3a the scores as violins, 3b their means against the deletion rate."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from c2faith.analysis import metrics
from c2faith.analysis.figures import layout, notes, style
from c2faith.analysis.figures.estimates import column
from c2faith.analysis.figures.style import FAINT, INK, PAGE, REFERENCE, Looks, Rng, styled
from c2faith.analysis.resampling import DRAWS
from c2faith.records import InputError

TOP = 4
_BANDWIDTH = 0.2
_HALF_WIDTH = 0.46
_RATES = {"nominal": "deletion_rate", "realized": "realized_rate"}


@styled
def fig3a_scores(coverage: pd.DataFrame, *, looks: Looks | None = None, draws: int = DRAWS, rng: Rng = 0) -> Figure:
    """Fig. 3a: the coverage scores of each judge by deletion level, as violins, a panel a judge.

    A violin's left half is the judge's, its right half the reference's (where there is one); both are smoothed
    with a Gaussian of 0.2 points and have the same area, so that their widths can be compared. The dot is the
    judge's mean with its 95% interval over chains, the dash the reference's mean.

    Parameters
    ----------
    coverage : DataFrame
        Verdict frame of the coverage task. Scores are of answered items; the note counts the others.
    looks : mapping, optional
        `style.looks` of the run; by default of this frame's judges.
    draws, rng
        Number of draws of the bootstrap over chains, and its generator or seed.
    """
    looks = style.present(coverage, looks)
    if not looks:
        return layout.empty("No coverage verdicts", PAGE)
    levels = sorted(coverage["deletion_rate"].unique())
    figure, panels = layout.panels(looks, 1.4, "middle steps removed, nominal (%)", "coverage score (0–4)")
    means = _means(coverage, looks, draws, rng)
    for (name, look), axes in zip(looks.items(), panels, strict=True):
        fill = look.bar | {"edgecolor": INK, "hatchcolor": "white"}
        mine = coverage[coverage["judge_id"] == name]
        for at, level in enumerate(levels):
            shown = mine[mine["deletion_rate"] == level]
            referenced = shown["reference"].dropna()
            _violin(axes, at, shown["value"].dropna(), sides=(-1,) if len(referenced) else (-1, 1), **fill)
            _violin(axes, at, referenced, sides=(1,), facecolor=FAINT, edgecolor=INK)
            if len(referenced):
                axes.hlines(referenced.mean(), at, at + _HALF_WIDTH, color=INK, linestyle="--", linewidth=1)
        own = layout.of_judge(means, name)
        layout.whiskers(axes, range(len(levels)), own, linewidth=1.1)
        axes.plot(own["value"].to_numpy(), "o", color="white", markeredgecolor=INK, markersize=3.5)
    panels[0].set(xticks=range(len(levels)), xticklabels=[f"{100 * level:.0f}" for level in levels])
    panels[0].set(ylim=(-0.5, TOP + 0.5), yticks=range(TOP + 1))
    layout.legend(
        figure,
        [
            Patch(facecolor="white", edgecolor=INK, label="left: judge"),
            Patch(facecolor=FAINT, edgecolor=INK, label="right: reference"),
            Line2D([], [], marker="o", color="white", markeredgecolor=INK, label="judge's mean"),
            Line2D([], [], color=INK, linestyle="--", label="reference mean"),
        ],
    )
    layout.note(figure, *_about(coverage, looks), notes.undefined(pd.concat(means)))
    return figure


def _violin(axes: Axes, at: float, scores: pd.Series, sides: tuple[int, ...], **keywords: object) -> None:
    """The smoothed distribution of `scores` to the left (−1) or right (1) of `at`; nothing for no scores."""
    if scores.empty:
        return
    height = np.linspace(-0.5, TOP + 0.5, 201)
    density = np.exp(-(((height[:, None] - scores.to_numpy()) / _BANDWIDTH) ** 2) / 2).mean(axis=1)
    height, density = height[density > 0.005], density[density > 0.005]
    for side in sides:
        axes.fill_betweenx(height, at, at + side * _HALF_WIDTH * density, **keywords)


@styled
def fig3b_trend(
    coverage: pd.DataFrame,
    *,
    x: Literal["nominal", "realized"] = "nominal",
    looks: Looks | None = None,
    draws: int = DRAWS,
    rng: Rng = 0,
) -> Figure:
    """Fig. 3b: mean coverage score against the share of middle steps removed; the reference's is dashed.

    Parameters
    ----------
    x : {'nominal', 'realized'}
        The level d asked for, or the mean share of the middle region really removed at that level [+] (the
        ceiling in Algorithm 1 makes it larger on short chains).
    coverage, looks, draws, rng
        As in `fig3a_scores`.
    """
    if x not in _RATES:
        raise InputError(f"x={x!r}: choose nominal or realized")
    looks = style.present(coverage, looks)
    if not looks:
        return layout.empty("No coverage verdicts")
    items = coverage.drop_duplicates("item_id")
    at = 100 * items.groupby("deletion_rate")[_RATES[x]].mean().to_numpy()
    means = _means(coverage, looks, draws, rng)
    xlabel, ylabel = f"middle steps removed, {x} (%)", "mean coverage score (0–4)"
    figure, grid = layout.curves(looks, at, means, gap=4, xlabel=xlabel, ylabel=ylabel)
    referenced = items["reference"].notna().any()
    if referenced:
        for axes in grid:
            axes.plot(at, items.groupby("deletion_rate")["reference"].mean(), **REFERENCE)
    grid[0].set(
        ylim=(-0.1, TOP + 0.1), yticks=range(TOP + 1), xticks=at, xticklabels=[f"{each:.0f}" for each in at]
    )
    layout.line_legend(figure, grid, looks, [Line2D([], [], **REFERENCE)] if referenced else [])
    layout.note(figure, *_about(coverage, looks), notes.undefined(pd.concat(means)))
    return figure


def _means(coverage: pd.DataFrame, looks: Looks, draws: int, rng: Rng) -> list[pd.DataFrame]:
    """The mean score of every judge, level by level."""
    table = metrics.coverage(coverage, draws=draws, rng=rng)
    return [column(rows, "mean", looks) for _, rows in table.groupby("deletion_rate")]


def _about(coverage: pd.DataFrame, looks: Looks) -> tuple[str, ...]:
    chains = coverage.groupby(["judge_id", "deletion_rate"])["item_id"].count()
    return (
        f"n = {notes.spread(chains)} chains a judge and level",
        "" if coverage["reference"].notna().any() else "no reference scores",
        notes.unanswered(coverage, looks),
        notes.INTERVALS,
    )
