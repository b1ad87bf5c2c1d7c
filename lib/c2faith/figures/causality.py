"""Figures of the two causality experiments: 2a, 2b, 5, 6 and 7."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from c2faith import metrics
from c2faith.figures import layout, notes, style
from c2faith.figures.estimates import by_judge, column, named_step
from c2faith.figures.style import COLUMN, FAINT, INK, MUTED, PAGE, Looks, styled
from c2faith.resampling import DRAWS, Resamples

Rng = np.random.Generator | int
POSITION_BINS = 5
WITHIN_MOST = 5
ERROR_REACH = 6
_MOST_PRINTED = 6


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
            _print_rate(axes, rate.value, digits=1, **place)
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


def _print_rate(axes: Axes, value: float, digits: int, **place: object) -> None:
    if np.isfinite(value):
        axes.text(s=f"{100 * value:.{digits}f}", fontsize=6, **place)


@styled
def fig2b_localization(
    localization: pd.DataFrame, *, looks: Looks | None = None, draws: int = DRAWS, rng: Rng = 0
) -> Figure:
    """Fig. 2b: localization metrics side by side, in percent with 95% intervals over chains.

    Exact match and detection are shares of all perturbed items; within 1 and within 2 are shares of the items
    where the judge named a step; clean accuracy [+] is the share of clean twins answered −1. Parameters as in
    `fig2a_detection`.
    """
    localization = localization[localization["kind"] != "natural"]
    looks = style.present(localization, looks)
    if not looks:
        return layout.empty("No localization verdicts on injected errors", PAGE)
    table = metrics.localization(localization, draws=draws, rng=rng)
    groups = {
        "exact": "exact match",
        "detection": "detected",
        "within_1": "within 1\nof detected",
        "within_2": "within 2\nof detected",
        "clean_accuracy": "clean chain\naccepted",
    }
    if not table["n_clean"].any():
        del groups["clean_accuracy"]
    estimates = [column(table, name, looks) for name in groups]
    figure, axes = layout.canvas(PAGE, 2.6)
    width = min(0.86 / len(looks), 0.3)
    for (name, look), offset in zip(looks.items(), layout.dodge(len(looks), width), strict=True):
        at, rates = np.arange(len(groups)) + offset, layout.of_judge(estimates, name)
        axes.bar(at, rates["value"], width, **look.bar)
        layout.whiskers(axes, at, rates)
        if len(looks) <= _MOST_PRINTED:
            for x, rate in zip(at, rates.itertuples(), strict=True):
                place = {"x": x, "y": np.nanmax([rate.high, rate.value, 0]) + 0.015, "ha": "center"}
                _print_rate(axes, rate.value, digits=0, **place)
    axes.set(xticks=range(len(groups)), xticklabels=groups.values(), ylim=(0, 1.1), yticks=np.linspace(0, 1, 6))
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("share of items (%)")
    layout.in_percent(axes.yaxis)
    layout.legend(figure, layout.bar_handles(looks))
    layout.note(
        figure,
        notes.counted(localization),
        notes.unanswered(localization, looks),
        notes.undefined(pd.concat(estimates)),
        notes.INTERVALS,
    )
    return figure


@styled
def fig5_within_k(
    localization: pd.DataFrame, *, looks: Looks | None = None, draws: int = DRAWS, rng: Rng = 0
) -> Figure:
    """Fig. 5: share of detected perturbed chains whose named step lies within k of the true one, k = 0 … 5.

    At the right stands each judge's detection rate, a step named, over all perturbed items. Parameters as in
    `fig2a_detection`.
    """
    bad = localization[localization["kind"] == "perturbed"]
    looks = style.present(bad, looks)
    if not looks:
        return layout.empty("No localization verdicts on perturbed chains")
    resamples = Resamples.draw(bad["chain_id"], draws, rng)
    miss, named = (bad["value"] - bad["target"]).abs(), named_step(bad)
    rates = [by_judge(bad, miss <= k, looks, resamples, among=named) for k in range(WITHIN_MOST + 1)]
    rates += [rates[0] * np.nan, by_judge(bad, named, looks, resamples)]  # NaN: no line between the two
    xlabel, ylabel = "distance k to the true step (steps)", "within k, of detected (%)"
    at = np.append(np.arange(WITHIN_MOST + 1), [WITHIN_MOST + 0.5, WITHIN_MOST + 1])
    figure, grid = layout.curves(looks, at, rates, gap=0.6, xlabel=xlabel, ylabel=ylabel)
    for axes in grid:
        axes.axvspan(WITHIN_MOST + 0.5, WITHIN_MOST + 1.5, color=FAINT, alpha=0.5, linewidth=0)
    grid[0].set_xticks(range(WITHIN_MOST + 2), [*map(str, range(WITHIN_MOST + 1)), "step\nnamed"])
    grid[0].set(xlim=(-0.5, WITHIN_MOST + 1.5), ylim=(0, 1.03), yticks=np.linspace(0, 1, 6))
    layout.in_percent(grid[0].yaxis)
    layout.line_legend(figure, grid, looks)
    layout.note(
        figure,
        notes.counted(bad),
        f"detected {notes.spread(named.groupby(bad['judge_id']).sum())}",
        "step named: detection rate over all items",
        notes.unanswered(bad, looks),
        notes.undefined(rates[0]),
        notes.INTERVALS,
    )
    return figure


@styled
def fig6_signed_error(
    localization: pd.DataFrame, *, looks: Looks | None = None, draws: int = DRAWS, rng: Rng = 0
) -> Figure:
    """Fig. 6: signed error of the named step, ĵ − j in steps, over detected perturbed chains, a panel a judge.

    Bars are shares of each error, those beyond ±6 gathered in the outer ones; the diamond is the mean with its
    95% interval over chains, the tick [+] the mean that wrong picks would have if they fell evenly on the other
    steps of their chain. Left of 0 a judge points too early. Parameters as in `fig2a_detection`.
    """
    localization = localization[localization["kind"] != "natural"]
    bad = localization[localization["kind"] == "perturbed"]
    looks = style.present(bad, looks)
    if not looks:
        return layout.empty("No localization verdicts on perturbed chains", PAGE)
    table = metrics.localization(localization, draws=draws, rng=rng)
    means, nulls = column(table, "signed_error", looks), table.set_index("judge_id")["signed_null"]
    error = (bad["value"] - bad["target"]).where(named_step(bad))
    figure, panels = layout.panels(looks, 1.3, "signed error ĵ − j (steps)", "share of detected (%)")
    bins = np.arange(-ERROR_REACH, ERROR_REACH + 1)
    for (name, look), axes in zip(looks.items(), panels, strict=True):
        errors = error[bad["judge_id"] == name].dropna().clip(-ERROR_REACH, ERROR_REACH)
        axes.set_title(f"{look.label} (n = {len(errors)})")
        if errors.empty:
            layout.says(axes, "named no step")
            continue
        axes.bar(bins, errors.value_counts(normalize=True).reindex(bins, fill_value=0), 0.9, **look.bar)
        axes.axvline(0, color=MUTED, linewidth=0.8, linestyle=":")
        _mark_mean(axes, means.loc[[name]], nulls[name])
    panels[0].set(xlim=(-ERROR_REACH - 0.7, ERROR_REACH + 0.7), ylim=(0, 1.1), xticks=bins[::2])
    panels[0].set_xticklabels([f"≤−{ERROR_REACH}", "−4", "−2", "0", "2", "4", f"≥{ERROR_REACH}"])
    layout.in_percent(panels[0].yaxis)
    layout.note(
        figure,
        "◆ mean; | mean if wrong picks fell evenly on the other steps",
        notes.counted(bad),
        notes.unanswered(bad, looks),
        notes.INTERVALS,
    )
    return figure


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
