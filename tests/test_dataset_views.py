"""The pictures of notebook 01: hand-made items give hand-worked tables."""

import pytest

from c2faith.analysis import dataset_views
from c2faith.dataset import Dataset, build
from c2faith.records import CausalityItem, Chain, CoverageItem

CHAIN = Chain("c", "p", "jsonl", "Is 1 < 2 & $x$?", ("a < b", "b = 2", "c = 3", "d = 4"))


def negated(edit_type):
    return CausalityItem("c/causality", "c", (), 1, "b = 2", "b ≠ 2", "a < b", "rules", edit_type, 0.9)


def degraded(rate, removed, n_middle=4):
    share = len(removed) / n_middle
    return CoverageItem(f"c/coverage-{rate}", "c", rate, (), removed, share, len(removed) / 8)


def of(causality=(), coverage=()):
    return Dataset(
        (CHAIN,), tuple(causality), tuple(coverage), (), {"parameters": {"alpha": "3/10", "beta": "9/10"}}
    )


def test_the_perturbed_step_is_marked_and_text_is_literal():
    page = dataset_views.marked_chain(CHAIN, negated("operator_swap"))
    assert page.count("line-through") == 1 and page.index("b = 2") < page.index("b ≠ 2") < page.index("c = 3")
    assert "a &lt; b" in page and "&amp;" in page and "<span>$</span>x<span>$</span>" in page
    assert "operator swap · step 1" in page


def test_the_edit_mix_stands_beside_table_6():
    mix = dataset_views.edit_mix(of([negated("numeric_swap")] * 3 + [negated("other")]))
    assert mix.loc["numeric_swap", ["n", "share", "paper_n"]].tolist() == [3, 0.75, 130]
    assert mix.loc["other", ["n", "share", "paper_n"]].tolist() == [1, 0.25, 0]
    assert mix["paper_n"].sum() == 450 and mix["n"].sum() == 4


def test_realized_rates_by_nominal_rate():
    items = [degraded(0.0, ()), degraded(0.5, (1, 2)), degraded(0.5, (1, 2, 3))]
    rates = dataset_views.deletion_rates(of(coverage=items))
    assert rates.loc[0.5].tolist() == [2, 2.5, 0.5, 0.625, 0.75, 2.5 / 8]
    assert rates.loc[0.0, "of_region_most"] == 0


@pytest.mark.parametrize(("higher", "nested"), [((1, 2), True), ((2, 3), False)])
def test_nested_or_not(higher, nested):
    assert dataset_views.is_nested(of(coverage=[degraded(0.3, higher), degraded(0.1, (1,))])) is nested


def test_figures_name_what_they_show_with_units():
    made = build("synthetic", limit=6)
    for draw in (dataset_views.lengths_and_positions, dataset_views.edits_and_deletions):
        for axes in draw(made).axes:
            assert axes.get_xlabel() and axes.get_legend() is not None
    left, right = dataset_views.lengths_and_positions(made).axes
    assert sum(bar.get_height() for bar in left.patches if bar.get_width() == 1) == 6
    assert left.get_title() == "6 chains" and right.get_title() == f"{len(made.causality)} perturbed chains"
