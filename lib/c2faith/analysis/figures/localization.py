"""Figures of Exp 2, localization: 2b the metrics, 5 how near the named step lies, 6 on which side of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from c2faith.analysis.figures import layout
from c2faith.analysis.figures.layout import INTERVALS, counted, note, unanswered, undefined
from c2faith.analysis.figures.registry import column, figure, rates, shown
from c2faith.analysis.figures.style import FAINT, INK, MUTED, PAGE, Looks
from c2faith.analysis.metrics import Measured

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


@figure("fig2b_localization", caption="Exp 2: localization metrics.", needs=("localization",))
def fig2b_localization(measured: Measured, looks: Looks) -> Figure:
    """Fig. 2b: localization metrics side by side, in percent with 95% intervals over chains.

    Exact match and detection are shares of all perturbed items; within 1 and within 2 are shares of the items
    where the judge named a step; clean accuracy [+] is the share of clean twins answered −1.
    """
    injected, looks = shown(measured, "localization", looks, "perturbed", "clean")
    if not looks:
        return layout.empty("No localization verdicts on injected errors", PAGE)
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
    note(picture, counted(injected), unanswered(injected, looks), undefined(*estimates), INTERVALS)
    return picture


@figure("fig5_within_k", caption="How near the named step lies to the true one.", needs=("localization",))
def fig5_within_k(measured: Measured, looks: Looks) -> Figure:
    """Fig. 5: share of detected perturbed chains whose named step lies within k of the true one, k = 0 … 5.

    At the right stands each judge's detection rate, a step named, over all perturbed items.
    """
    bad, looks = shown(measured, "localization", looks, "perturbed")
    if not looks:
        return layout.empty("No localization verdicts on perturbed chains")
    miss, named = (bad["value"] - bad["target"]).abs(), _named_step(bad)
    found = [rates(measured, bad, looks, miss <= k, named) for k in range(WITHIN_MOST + 1)]
    found += [found[0] * np.nan, rates(measured, bad, looks, named)]  # NaN: no line between the two
    xlabel, ylabel = "distance k to the true step (steps)", "within k, of detected (%)"
    at = np.append(np.arange(WITHIN_MOST + 1), [WITHIN_MOST + 0.5, WITHIN_MOST + 1])
    picture, grid = layout.curves(looks, at, found, gap=0.6, xlabel=xlabel, ylabel=ylabel)
    for axes in grid:
        axes.axvspan(WITHIN_MOST + 0.5, WITHIN_MOST + 1.5, color=FAINT, alpha=0.5, linewidth=0)
    grid[0].set_xticks(range(WITHIN_MOST + 2), [*map(str, range(WITHIN_MOST + 1)), "step\nnamed"])
    grid[0].set_xlim(-0.5, WITHIN_MOST + 1.5)
    layout.shares(grid[0])
    layout.legend(picture, layout.line_handles(looks, grid))
    detected = f"detected {layout.spread(named.groupby(bad['judge_id']).sum())}"
    about = detected, "step named: detection rate over all items"
    note(picture, counted(bad), *about, unanswered(bad, looks), undefined(found[0]), INTERVALS)
    return picture


@figure(
    "fig6_signed_error",
    caption="On which side of the true step the named one lies.",
    needs=("localization",),
)
def fig6_signed_error(measured: Measured, looks: Looks) -> Figure:
    """Fig. 6: signed error of the named step, ĵ − j in steps, over detected perturbed chains, a panel a judge.

    Bars are shares of each error, those beyond ±6 gathered in the outer ones; the diamond is the mean with its
    95% interval over chains, the tick [+] the mean that wrong picks would have if they fell evenly on the other
    steps of their chain. Left of 0 a judge points too early.
    """
    bad, looks = shown(measured, "localization", looks, "perturbed")
    if not looks:
        return layout.empty("No localization verdicts on perturbed chains", PAGE)
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
    note(picture, marks, counted(bad), unanswered(bad, looks), INTERVALS)
    return picture


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
