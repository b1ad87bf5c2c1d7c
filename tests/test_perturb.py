"""Algorithm 1: which steps may be perturbed, how many are deleted, and what stays as it was."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from c2faith.dataset.negate import make
from c2faith.dataset.perturb import NoNegation, delete_nested, delete_steps, middle_region, replace_step
from c2faith.records import Chain, InputError, rng

RATES = ("0.1", "0.3", "0.5", "0.7")


def chain_of(n_steps: int, name: str = "c") -> Chain:
    return Chain(
        name, name, "jsonl", "What is x?", tuple(f"Thus, we have x_{i}+{i + 2}=1{i}." for i in range(n_steps))
    )


# The paper's I = {⌈0.3 N⌉ … ⌊0.9 N⌋}, counted from 1, by hand: 5: {2,3,4}, 6: {2,…,5}, 10: {3,…,9}, 13: ⌈3.9⌉ = 4 …
# ⌊11.7⌋ = 11, 30: {9,…,27}; less one each, because we count from 0.
@pytest.mark.parametrize(
    ("n_steps", "region"),
    [(5, range(1, 4)), (6, range(1, 5)), (10, range(2, 9)), (13, range(3, 11)), (30, range(8, 27))],
)
def test_middle_region_by_hand(n_steps, region):
    assert middle_region(n_steps) == region


# ⌈d·|I|⌉ for |I| = 3, 4, 7, 8, 19 and d = 0.1, 0.3, 0.5, 0.7:
# 0.3·19 = 5.7 → 6, 0.7·19 = 13.3 → 14, 0.5·8 = 4 exactly, 0.7·7 = 4.9 → 5.
@pytest.mark.parametrize(
    ("n_steps", "counts"),
    [(5, (1, 1, 2, 3)), (6, (1, 2, 2, 3)), (10, (1, 3, 4, 5)), (13, (1, 3, 4, 6)), (30, (2, 6, 10, 14))],
)
def test_deletion_counts_by_hand(n_steps, counts):
    found = tuple(len(delete_steps(chain_of(n_steps), rate, rng(0, rate)).removed) for rate in RATES)
    assert found == counts


@pytest.mark.parametrize("rate", [0.3, "0.3", "3/10", Fraction(3, 10)])
def test_rates_are_exact_rationals(rate):
    # |I| = 10 (with α = 0.1, β = 1 and N = 11: ⌈1.1⌉ = 2 … 11): 0.3 · 10 is 3, though as floats it exceeds 3.
    assert len(delete_steps(chain_of(11), rate, rng(0), alpha="0.1", beta=1).removed) == 3


def test_region_bounds_given_as_floats_are_read_as_decimals():
    # As a float 0.7 · 10 = 7.000000000000001 on some orders of operations; ⌊0.7 · 10⌋ must be 7, ⌈0.7 · 10⌉ too.
    assert middle_region(10, 0.7, 0.7) == range(6, 7)


def test_a_region_may_be_empty():
    assert len(middle_region(1)) == 0  # ⌈0.3⌉ = 1 > ⌊0.9⌋ = 0
    with pytest.raises(InputError, match="no middle region"):
        delete_steps(chain_of(1), "0.5", rng(0))


def test_region_bounds_outside_the_chain_are_refused():
    with pytest.raises(InputError, match="must lie between 0 and 1"):
        middle_region(10, alpha=-0.1)


@pytest.mark.parametrize("rate", ["", "many", "1/0", "nan"])
def test_a_rate_that_is_no_number_is_refused(rate):
    with pytest.raises(InputError, match="is no number"):
        delete_steps(chain_of(9), rate, rng(0))


def test_the_control_removes_nothing():
    chain = chain_of(9)
    control = delete_steps(chain, 0, rng(0))
    assert control.steps == chain.steps
    assert (control.item_id, control.removed, control.realized_rate) == ("c/coverage-00", (), 0.0)


def test_item_names_and_realized_rates():
    item = delete_steps(chain_of(10), "0.3", rng(0))
    assert item.item_id == "c/coverage-30"
    assert item.deletion_rate == 0.3
    assert item.realized_rate == 3 / 7  # ⌈0.3 · 7⌉ of 7
    assert item.realized_chain_rate == 3 / 10


@pytest.mark.parametrize("seed", range(25))
def test_deletions_keep_order_and_stay_in_the_region(seed):
    chain = chain_of(5 + seed)
    before = chain.steps
    for rate in RATES:
        item = delete_steps(chain, rate, rng(seed, rate))
        assert set(item.removed) <= set(middle_region(len(chain.steps)))
        assert list(item.removed) == sorted(set(item.removed))
        assert list(item.steps) == [step for i, step in enumerate(before) if i not in item.removed]
    assert chain.steps == before


@pytest.mark.parametrize("seed", range(10))
def test_nested_removals_are_subsets(seed):
    items = delete_nested(chain_of(20), ("0", *RATES), rng(seed))
    removed = [set(item.removed) for item in items]
    assert all(lower < higher for lower, higher in pairwise(removed))
    assert [len(r) for r in removed] == [0, 2, 4, 7, 10]  # |I| = |{6,…,18}| = 13


def test_every_step_of_the_region_is_removed_equally_often():
    # 3 of 7 steps, 2,000 draws: each is removed 857 times on average, with a standard deviation of about 22.
    counts = Counter(i for seed in range(2000) for i in delete_steps(chain_of(10), "0.3", rng(seed)).removed)
    assert set(counts) == set(middle_region(10))
    assert all(abs(count - 2000 * 3 / 7) < 5 * 22.2 for count in counts.values())


@pytest.mark.parametrize("seed", range(25))
def test_exactly_one_step_differs(seed):
    chain = chain_of(5 + seed % 7)
    item = replace_step(chain, make("rules"), rng(seed))
    assert item.target in middle_region(len(chain.steps))
    assert [i for i, pair in enumerate(zip(chain.steps, item.steps, strict=True)) if pair[0] != pair[1]] == [
        item.target
    ]
    assert item.original_step == chain.steps[item.target]
    assert item.perturbed_step == item.steps[item.target]
    assert item.context == chain.steps[item.target - 1]
    assert item.item_id == "c/causality"


def test_the_same_seed_gives_the_same_item():
    chain = chain_of(12)
    assert replace_step(chain, make("rules"), rng(3)) == replace_step(chain, make("rules"), rng(3))


class Scripted:
    """A negator that offers the given texts for every step."""

    name = "scripted"

    def __init__(self, *texts):
        self.texts, self.rejections = texts, Counter()

    def negate(self, chain, target, rng):
        yield from self.texts


def test_targets_are_uniform_over_the_region():
    # 1,500 draws over the 3 steps of N = 5: 500 each, standard deviation √(1500 · 1/3 · 2/3) = 18.3.
    targets = Counter(replace_step(chain_of(5), Scripted("No."), rng(seed)).target for seed in range(1500))
    assert set(targets) == {1, 2, 3}
    assert all(abs(count - 500) < 5 * 18.3 for count in targets.values())


def test_rejected_candidates_are_counted_and_the_next_one_taken():
    chain = Chain("c", "c", "jsonl", "?", ("Let a and b be 2.", "So a+b=4.", "So a=2."))
    negator = Scripted("", "so a + b = 4", "So b+a=4.", "So a+b=5.")
    item = replace_step(chain, negator, rng(0), alpha="0.5", beta="0.7")  # I = {⌈1.5⌉ … ⌊2.1⌋} = {2}, index 1
    assert item.perturbed_step == "So a+b=5."
    assert negator.rejections == {"empty": 1, "unchanged": 1, "equivalent": 1}


def test_a_chain_without_a_valid_negation_is_an_input_error():
    with pytest.raises(NoNegation, match="c: scripted has no valid negation"):
        replace_step(chain_of(6), Scripted(""), rng(0))
    assert issubclass(NoNegation, InputError)


def test_the_first_step_has_no_context():
    chain = Chain("c", "c", "jsonl", "?", ("So x=2.", "So y=3."))
    item = replace_step(chain, Scripted("So x=5."), rng(0), alpha=0, beta="0.5")
    assert (item.target, item.context) == (0, "")


def test_inputs_are_drawn_from_the_given_generator_only():
    np.random.seed(0)
    first = replace_step(chain_of(9), make("rules"), rng(1))
    np.random.seed(1)
    assert replace_step(chain_of(9), make("rules"), rng(1)) == first
