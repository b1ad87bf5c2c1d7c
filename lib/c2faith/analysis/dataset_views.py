"""What a dataset looks like: chains with their perturbed step marked, its histograms beside the paper's figures."""

from __future__ import annotations

import html
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from c2faith.analysis import published
from c2faith.analysis.figures.layout import canvas, in_percent
from c2faith.analysis.figures.style import INK, MUTED, PAGE, REFERENCE, looks, styled
from c2faith.dataset import Dataset
from c2faith.dataset.edits import EDIT_TYPES
from c2faith.records import CausalityItem, Chain

PAPER_LENGTHS = (8, 13, 30)
"""Least, median and greatest number of steps of the paper's 450 chains (section 4.1)."""
_LOOKS = looks(["our run", "paper"])
_GONE, _NEW = "#fbe3d6", "#d6e9f8"


def marked_chain(chain: Chain, item: CausalityItem) -> str:
    """A chain as HTML: the original step struck out, its negation under it, indices from 0."""
    rows = []
    for index, step in enumerate(chain.steps):
        if index != item.target:
            rows.append(_row(str(index), step))
            continue
        rows.append(_row(str(index), step, f"background:{_GONE};text-decoration:line-through"))
        rows.append(_row("→", item.perturbed_step, f"background:{_NEW}"))
    caption = f"{chain.source} · {chain.problem_id} · {item.edit_type.replace('_', ' ')} · step {item.target}"
    return (
        f"<p><b>{html.escape(caption)}</b><br>{_text(chain.question)}</p>"
        f'<table style="text-align:left;width:100%">{"".join(rows)}</table>'
    )


def _row(name: str, step: str, style: str = "") -> str:
    cell = f'style="text-align:left;{style}"'
    return f'<tr><td style="width:2em;vertical-align:top">{name}</td><td {cell}>{_text(step)}</td></tr>'


def _text(text: str) -> str:
    """Literal text: no Markdown, no TeX; a dollar sign in a tag of its own starts no formula."""
    return html.escape(text).replace("$", "<span>$</span>").replace("\\", "&#92;").replace("\n", "<br>")


@styled
def lengths_and_positions(dataset: Dataset) -> Figure:
    """How long the chains are and where in them the perturbed step stands, with the paper's figures marked."""
    figure, (left, right) = canvas(PAGE, 2.4, 1, 2)
    ours, paper = _LOOKS["our run"], _LOOKS["paper"]
    size = {chain.chain_id: len(chain.steps) for chain in dataset.chains}
    lengths = np.array(list(size.values()))
    shortest, median, longest = PAPER_LENGTHS
    edges = np.arange(min(shortest, lengths.min()), max(longest, lengths.max()) + 2) - 0.5
    left.hist(lengths, edges, **ours.bar)
    left.axvspan(shortest, longest, color=paper.colour, alpha=0.25, zorder=0, label="paper: 8–30 steps")
    left.axvline(median, color=paper.colour, linestyle="--", label=f"paper: median {median}")
    left.axvline(np.median(lengths), color=INK, label=f"median {np.median(lengths):g}")
    left.set(xlabel="steps of a chain", ylabel="chains", title=f"{len(lengths)} chains")
    left.legend()

    places = [(item.target + 1) / size[item.chain_id] for item in dataset.causality]
    right.hist(places, np.linspace(-0.025, 1.025, 22), **ours.bar)
    bounds = [float(Fraction(dataset.manifest["parameters"][name])) for name in ("alpha", "beta")]
    right.axvspan(*bounds, color=paper.colour, alpha=0.25, zorder=0, label="middle region")
    right.set(xlabel="position of the perturbed step in its chain (%)", ylabel="items", xlim=(0, 1))
    right.set_title(f"{len(places)} perturbed chains")
    right.legend(loc="upper left")
    in_percent(right.xaxis)
    for axes in (left, right):
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def edit_mix(dataset: Dataset) -> pd.DataFrame:
    """Number and share of each edit type, beside the paper's Table 6."""
    found = pd.Series([item.edit_type for item in dataset.causality], dtype=object).value_counts()
    printed = published.table6().set_index("edit_type")["n"]
    frame = (
        pd.DataFrame({"n": found, "paper_n": printed}).reindex(EDIT_TYPES, fill_value=0).rename_axis("edit_type")
    )
    frame = frame.fillna(0).astype(int)
    shares = frame / frame.sum()
    return frame.assign(share=shares["n"], paper_share=shares["paper_n"])[["n", "share", "paper_n", "paper_share"]]


def deletion_rates(dataset: Dataset) -> pd.DataFrame:
    """Per nominal deletion rate: items, mean steps removed, and what share of the middle region and chain that is.

    The share of the region is at least the nominal one, since ⌈d·|I|⌉ steps are removed.
    """
    rows = pd.DataFrame(
        [
            (item.deletion_rate, len(item.removed), item.realized_rate, item.realized_chain_rate)
            for item in dataset.coverage
        ],
        columns=["deletion_rate", "removed", "of_region", "of_chain"],
    )
    return rows.groupby("deletion_rate").agg(
        n=("removed", "size"),
        removed_mean=("removed", "mean"),
        of_region_least=("of_region", "min"),
        of_region_mean=("of_region", "mean"),
        of_region_most=("of_region", "max"),
        of_chain_mean=("of_chain", "mean"),
    )


@styled
def edits_and_deletions(dataset: Dataset) -> Figure:
    """The mix of edit types beside Table 6, and the realized deletion rates (mean, range) against the nominal."""
    figure, (left, right) = canvas(PAGE, 2.4, 1, 2)
    _mix(left, edit_mix(dataset))
    rates = deletion_rates(dataset)
    spread = [rates["of_region_mean"] - rates["of_region_least"], rates["of_region_most"] - rates["of_region_mean"]]
    line = _LOOKS["our run"].line | {"linestyle": "none", "capsize": 2}
    right.errorbar(rates.index, rates["of_region_mean"], spread, label="of the middle region", **line)
    right.plot(rates.index, rates["of_chain_mean"], label="of the chain", color=MUTED, marker="s")
    right.plot([0, 1], [0, 1], **REFERENCE | {"label": "nominal"})
    right.set(xlabel="nominal deletion rate (%)", ylabel="steps removed (%)", xlim=(-0.03, 1), ylim=(-0.03, 1.03))
    in_percent(right.xaxis)
    in_percent(right.yaxis)
    right.legend(loc="upper left")
    return figure


def _mix(axes: Axes, mix: pd.DataFrame) -> None:
    places = np.arange(len(mix))
    for column, name, offset in (("share", "our run", -0.2), ("paper_share", "paper", 0.2)):
        axes.barh(places + offset, mix[column], 0.38, label=name, **_LOOKS[name].bar)
    axes.set_yticks(places, [name.replace("_", " ") for name in mix.index])
    axes.set(xlabel="share of items (%)", title="edit types")
    axes.grid(axis="y", visible=False)
    axes.invert_yaxis()
    in_percent(axes.xaxis)
    axes.legend()


def is_nested(dataset: Dataset) -> bool:
    """Whether, in every chain, what a lower deletion rate removes is part of what the next one removes."""
    by_chain: dict[str, list[set[int]]] = {}
    for item in sorted(dataset.coverage, key=lambda item: item.deletion_rate):
        by_chain.setdefault(item.chain_id, []).append(set(item.removed))
    return all(lower <= higher for removed in by_chain.values() for lower, higher in pairwise(removed))
