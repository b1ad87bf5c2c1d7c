"""Figures of Exp 1, detection: 2a the rates with the false alarms, 7 the rates by position in the chain."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from c2faith.analysis import metrics
from c2faith.analysis.figures import layout, notes, style
from c2faith.analysis.figures.estimates import by_judge, column
from c2faith.analysis.figures.style import COLUMN, MUTED, Looks, Rng, styled
from c2faith.analysis.resampling import DRAWS, Resamples

POSITION_BINS = 5


@styled
def fig2a_detection(
    detection: pd.DataFrame, *, looks: Looks | None = None, draws: int = DRAWS, rng: Rng = 0
) -> Figure:
    """Fig. 2a: share of perturbed steps that each judge flags, and of clean twins that it flags too [+].

    Parameters
    ----------
    detection : DataFrame
        Verdict frame of the detection task. An unanswered item counts as not flagged.
    looks : mapping, optional
        `style.looks` of the run; by default of this frame's judges.
    draws, rng
        Number of draws of the bootstrap over chains, and its generator or seed.

    Returns
    -------
    Figure
        Horizontal bars in percent with 95% intervals.
    """
    looks = style.present(detection, looks)
    if not looks:
        return layout.empty("No detection verdicts")
    table = metrics.detection(detection, draws=draws, rng=rng)
    twins = bool(table["n_clean"].any())
    bars = [("detection", "perturbed step", 1.0), ("false_alarm", "clean twin (false alarm)", 0.45)][: 1 + twins]
    figure, axes = layout.canvas(COLUMN, 1.0 + 0.32 * len(looks))
    rows, height = np.arange(len(looks)), 0.78 / len(bars)
    for (name, _, alpha), offset in zip(bars, layout.dodge(len(bars), height), strict=True):
        rates = column(table, name, looks)
        for row, look, rate in zip(rows, looks.values(), rates.itertuples(), strict=True):
            axes.barh(row + offset, rate.value, height, alpha=alpha, **look.bar)
            place = {"x": np.nanmax([rate.high, rate.value]) + 0.015, "y": row + offset, "va": "center_baseline"}
            layout.print_rate(axes, rate.value, digits=1, **place)
        layout.whiskers(axes, rows + offset, rates, vertical=False)
    axes.set(yticks=rows, yticklabels=[look.label for look in looks.values()])
    axes.set(xlim=(0, 1.14), ylim=(len(looks) - 0.5, -0.5), xticks=np.linspace(0, 1, 6))
    axes.grid(axis="x")
    axes.grid(False, axis="y")
    axes.set_xlabel("steps flagged as not following (%)")
    layout.in_percent(axes.xaxis)
    layout.legend(figure, [Patch(color=MUTED, alpha=alpha, label=label) for _, label, alpha in bars])
    layout.note(
        figure,
        notes.counted(detection),
        "" if twins else "no clean twins: false alarms unknown",
        notes.unanswered(detection, looks),
        notes.INTERVALS,
    )
    return figure


@styled
def fig7_position(
    detection: pd.DataFrame, *, looks: Looks | None = None, draws: int = DRAWS, rng: Rng = 0
) -> Figure:
    """Fig. 7: detection rate by relative position of the perturbed step, in 5 bins of equal width.

    The position is target / chain length, so 0 is the first step; the bins span the positions that occur.
    Parameters as in `fig2a_detection`.
    """
    bad = detection[detection["kind"] == "perturbed"]
    looks = style.present(bad, looks)
    if not looks:
        return layout.empty("No detection verdicts on perturbed steps")
    resamples = Resamples.draw(bad["chain_id"], draws, rng)
    position = bad["target"] / bad["n_steps"]
    edges = np.histogram_bin_edges(position, POSITION_BINS)
    cell = np.clip(np.searchsorted(edges, position, side="right") - 1, 0, POSITION_BINS - 1)
    rates = [by_judge(bad, bad["value"] == 0, looks, resamples, among=cell == b) for b in range(POSITION_BINS)]
    counts = [bad.loc[cell == b, "item_id"].nunique() for b in range(POSITION_BINS)]
    xlabel, ylabel = "share of the chain before the step", "perturbed steps detected (%)"
    at = np.arange(POSITION_BINS)
    figure, grid = layout.curves(looks, at, rates, gap=0.6, xlabel=xlabel, ylabel=ylabel)
    spans = zip(edges, edges[1:], counts, strict=False)
    grid[0].set_xticks(at, [f"{low:.2f}–\n{high:.2f}\n({count})" for low, high, count in spans])
    grid[0].set(ylim=(0, 1.03), yticks=np.linspace(0, 1, 6))
    layout.in_percent(grid[0].yaxis)
    layout.line_legend(figure, grid, looks)
    layout.note(
        figure,
        notes.counted(bad),
        notes.unanswered(bad, looks),
        notes.undefined(pd.concat(rates)),
        notes.INTERVALS,
    )
    return figure
