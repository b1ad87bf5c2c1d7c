"""Figures of the coverage task: 3a the scores as violins, 3b their means against the deletion rate."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from c2faith.analysis.figures import layout
from c2faith.analysis.figures.layout import INTERVALS, note, undefined
from c2faith.analysis.figures.registry import column, figure, shown
from c2faith.analysis.figures.style import FAINT, INK, REFERENCE, Looks
from c2faith.analysis.metrics import Measured
from c2faith.records import InputError

TOP = 4
_BANDWIDTH = 0.2
_HALF_WIDTH = 0.46
_RATES = {"nominal": "deletion_rate", "realized": "realized_rate"}


@figure("Coverage scores by deletion level, judges against the reference.", "coverage")
def fig3a_scores(measured: Measured, looks: Looks) -> Figure:
    """Fig. 3a: the coverage scores of each judge by deletion level, as violins, a panel a judge.

    A violin's left half is the judge's, its right half the reference's (where there is one); both are smoothed
    with a Gaussian of 0.2 points and have the same area, so that their widths can be compared. The dot is the
    judge's mean with its 95% interval over chains, the dash the reference's mean. Scores are of answered items;
    the note counts the others.
    """
    frame, looks = shown(measured, "coverage", looks)
    levels = sorted(frame["deletion_rate"].unique())
    picture, panels = layout.panels(looks, 1.4, "middle steps removed, nominal (%)", "coverage score (0–4)")
    means = _means(measured, looks)
    for (name, look), axes in zip(looks.items(), panels, strict=True):
        fill = look.bar | {"edgecolor": INK, "hatchcolor": "white"}
        mine = frame[frame["judge_id"] == name]
        for at, level in enumerate(levels):
            scores = mine[mine["deletion_rate"] == level]
            referenced = scores["reference"].dropna()
            _violin(axes, at, scores["value"].dropna(), sides=(-1,) if len(referenced) else (-1, 1), **fill)
            _violin(axes, at, referenced, sides=(1,), facecolor=FAINT, edgecolor=INK)
            if len(referenced):
                axes.hlines(referenced.mean(), at, at + _HALF_WIDTH, color=INK, linestyle="--", linewidth=1)
        own = layout.of_judge(means, name)
        layout.whiskers(axes, range(len(levels)), own, linewidth=1.1)
        axes.plot(own["value"].to_numpy(), "o", color="white", markeredgecolor=INK, markersize=3.5)
    panels[0].set(xticks=range(len(levels)), xticklabels=[f"{100 * level:.0f}" for level in levels])
    panels[0].set(ylim=(-0.5, TOP + 0.5), yticks=range(TOP + 1))
    handles = [
        Patch(facecolor="white", edgecolor=INK, label="left: judge"),
        Patch(facecolor=FAINT, edgecolor=INK, label="right: reference"),
        Line2D([], [], marker="o", color="white", markeredgecolor=INK, label="judge's mean"),
        Line2D([], [], color=INK, linestyle="--", label="reference mean"),
    ]
    layout.legend(picture, handles)
    return note(picture, *_about(frame, looks), undefined(*means))


def _violin(axes: Axes, at: float, scores: pd.Series, sides: tuple[int, ...], **keywords: object) -> None:
    """The smoothed distribution of `scores` to the left (−1) or right (1) of `at`; nothing for no scores."""
    if scores.empty:
        return
    height = np.linspace(-0.5, TOP + 0.5, 201)
    density = np.exp(-(((height[:, None] - scores.to_numpy()) / _BANDWIDTH) ** 2) / 2).mean(axis=1)
    height, density = height[density > 0.005], density[density > 0.005]
    for side in sides:
        axes.fill_betweenx(height, at, at + side * _HALF_WIDTH * density, **keywords)


@figure(
    "The same against the share of middle steps really removed.",
    "coverage",
    name="fig3b_trend_realized",
    x="realized",
)
@figure("Mean coverage score against the deletion level; dashed: the reference.", "coverage")
def fig3b_trend(measured: Measured, looks: Looks, *, x: Literal["nominal", "realized"] = "nominal") -> Figure:
    """Fig. 3b: mean coverage score against the share of middle steps removed; the reference's is dashed.

    Parameters
    ----------
    x : {'nominal', 'realized'}
        The level d asked for, or the mean share of the middle region really removed at that level [+] (the
        ceiling in Algorithm 1 makes it larger on short chains).
    """
    if x not in _RATES:
        raise InputError(f"x={x!r}: choose nominal or realized")
    frame, looks = shown(measured, "coverage", looks)
    items = frame.drop_duplicates("item_id")
    at = 100 * items.groupby("deletion_rate")[_RATES[x]].mean().to_numpy()
    means = _means(measured, looks)
    referenced = [Line2D([], [], **REFERENCE)] if items["reference"].notna().any() else []
    words = f"middle steps removed, {x} (%)", "mean coverage score (0–4)"
    picture, grid = layout.curves(looks, at, means, *words, gap=4, handles=referenced)
    for axes in grid if referenced else []:
        axes.plot(at, items.groupby("deletion_rate")["reference"].mean(), **REFERENCE)
    grid[0].set(ylim=(-0.1, TOP + 0.1), yticks=range(TOP + 1))
    grid[0].set(xticks=at, xticklabels=[f"{each:.0f}" for each in at])
    return note(picture, *_about(frame, looks), undefined(*means))


def _means(measured: Measured, looks: Looks) -> list[pd.DataFrame]:
    """The mean score of every judge, level by level."""
    table = measured.of("coverage", "coverage")
    return [column(rows, "mean", looks) for _, rows in table.groupby("deletion_rate")]


def _about(frame: pd.DataFrame, looks: Looks) -> tuple[str, ...]:
    chains = frame.groupby(["judge_id", "deletion_rate"])["item_id"].count()
    known = "" if frame["reference"].notna().any() else "no reference scores"
    return (
        f"n = {layout.spread(chains)} chains a judge and level",
        known,
        layout.unanswered(frame, looks),
        INTERVALS,
    )
