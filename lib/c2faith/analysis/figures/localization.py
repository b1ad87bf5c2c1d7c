"""Figures of Exp 2, localization: 2b the metrics, 5 how near the named step lies, 6 on which side of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from c2faith.analysis import metrics
from c2faith.analysis.figures import layout, notes, style
from c2faith.analysis.figures.estimates import by_judge, column, named_step
from c2faith.analysis.figures.style import FAINT, INK, MUTED, PAGE, Looks, Rng, styled
from c2faith.analysis.resampling import DRAWS, Resamples

WITHIN_MOST = 5
ERROR_REACH = 6
_MOST_PRINTED = 6


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
                layout.print_rate(axes, rate.value, digits=0, **place)
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
