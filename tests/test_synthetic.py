"""Made-up chains are verified again: every equation evaluated, every answer found by other means."""

import math
import re
from fractions import Fraction

import pytest
import sympy

from c2faith.dataset.chains import load_chains
from c2faith.dataset.sources import synthetic
from c2faith.dataset.sources.synthetic import numbered
from c2faith.records import InputError, rng

EQUATION = re.compile(r"(?<![A-Za-z\d])[-(\dxy][-+*/^()\dxy ]*(?:=[-+*/^()\dxy ]+)+(?![A-Za-z])")
x, y = sympy.symbols("x y")


def worked(name, index):
    family = next(family for family in synthetic.FAMILIES if family.__name__ == name)
    return family(rng(7, name, str(index)))


def sides(text):
    """Sympy expressions of the sides of every equation in a text."""
    text = re.sub(r"gcd\((\d+), (\d+)\)", lambda m: str(math.gcd(int(m[1]), int(m[2]))), re.sub(r"x_\d+", "", text))
    for found in EQUATION.finditer(text):
        yield [expression(side) for side in found[0].split("=")]


def expression(text):
    explicit = re.sub(r"(?<=[\dxy)])\s*(?=[xy(])", "*", text.strip()).replace("^", "**")
    return sympy.sympify(explicit, rational=True)


def solutions(name, question):
    """All (x, y) that satisfy the question's equations."""
    if name not in ("linear_equation", "linear_system", "quadratic"):
        return [{}]
    equations = [left - right for left, right in sides(question)]
    unknowns = [symbol for symbol in (x, y) if any(e.has(symbol) for e in equations)]
    return sympy.solve(equations, unknowns, dict=True)


@pytest.mark.parametrize("family", synthetic.FAMILIES, ids=lambda family: family.__name__)
def test_every_equation_of_every_step_holds(family):
    n_equations = 0
    for index in range(8):
        question, steps, _ = worked(family.__name__, index)
        found = solutions(family.__name__, question)
        for text in steps:
            for parts in sides(text):
                n_equations += 1
                at = found if len(found) == 1 or parts[0] == x else [{}]  # of two roots one; else identically
                holds = [all(sympy.expand((p - parts[0]).subs(each)) == 0 for p in parts[1:]) for each in at]
                assert any(holds), text
    assert n_equations >= 24, "the steps state equations"


def numbers(text):
    return [int(found) for found in re.findall(r"-?\d+", text)]


def answer_of_ledger(question):
    first, *events = question.split(". ")
    gain = ("get on", "returned", "paid in", "delivered")
    total = numbers(first)[0]
    for event in events[:-1]:
        total += numbers(event)[1] * (1 if event.rstrip(".").endswith(gain) else -1)
    return total


def answer_of_shopping(question):
    cost = sum(int(n) * int(p) for n, p in re.findall(r"(\d+) \w+ at (\d+) dollars", question))
    percent, paid = (
        int(re.search(r"(\d+) percent", question)[1]),
        int(re.search(r"from (\d+) dollars", question)[1]),
    )
    return paid - Fraction(cost * (100 - percent), 100)


def answer_of_recurrence(question):
    value, factor, shift, length = re.search(
        r"x_1 = (\d+) .* = (-?\d+) \* x_n ([+-] \d+) .* x_(\d+)\.", question
    ).groups()
    value = int(value)
    for _ in range(int(length) - 1):
        value = int(factor) * value + int(shift.replace(" ", ""))
    return value


def answer_of_system(question):
    (only,) = solutions("linear_system", question)
    return only[x] + only[y]


def digit_sum(number, base):
    return sum(sympy.ntheory.factor_.digits(number, base)[1:])


ANSWERS = {
    "ledger": answer_of_ledger,
    "shopping": answer_of_shopping,
    "nested_expression": lambda q: expression(q.removeprefix("Evaluate ").rstrip(".")),
    "fraction_sum": lambda q: expression(re.search(r"Write (.*) as", q)[1]),
    "linear_equation": lambda q: solutions("linear_equation", q)[0][x],
    "linear_system": answer_of_system,
    "quadratic": lambda q: abs(sympy.Add(*(s[x] * (-1) ** i for i, s in enumerate(solutions("quadratic", q))))),
    "recurrence": answer_of_recurrence,
    "euclid": lambda q: sympy.ilcm(*numbers(q)),
    "base_digits": lambda q: digit_sum(*numbers(q)),
    "power_remainder": lambda q: pow(*numbers(q.replace("^", " "))),
}


@pytest.mark.parametrize("family", synthetic.FAMILIES, ids=lambda family: family.__name__)
def test_every_answer_is_right_and_stated_last(family):
    for index in range(12):
        question, steps, answer = worked(family.__name__, index)
        assert sympy.Rational(answer) == ANSWERS[family.__name__](question), question
        assert answer in steps[-1]


@pytest.mark.parametrize("family", synthetic.FAMILIES, ids=lambda family: family.__name__)
def test_lengths_are_within_5_to_20_and_problems_vary(family):
    made = [worked(family.__name__, index) for index in range(300)]
    assert all(5 <= len(steps) <= synthetic.MAX_STEPS for _, steps, _ in made)
    assert len({question for question, _, _ in made}) > 240


def test_lengths_spread_over_the_whole_range():
    lengths = {len(numbered(0, index).steps) for index in range(400)}
    assert lengths == set(range(5, synthetic.MAX_STEPS + 1))


def test_a_larger_limit_only_adds_chains():
    few, many = (load_chains("synthetic", limit=limit, seed=3) for limit in (20, 60))
    assert len(few) == 20 and len(many) == 60
    assert set(few) < set(many)
    assert len({chain.problem_id for chain in many}) == 60
    assert not set(few) & set(load_chains("synthetic", limit=20, seed=4))


def test_min_steps_beyond_the_longest_chain_is_refused():
    assert min(len(chain.steps) for chain in load_chains("synthetic", limit=5, min_steps=20)) == 20
    with pytest.raises(InputError, match="MIN_STEPS=21: synthetic chains have at most 20 steps"):
        load_chains("synthetic", min_steps=21)
