"""Families of made-up problems with worked solutions: each maps a generator to (question, steps, answer).

Every number in a step is computed in integers or fractions, never copied from another step's text. The texts are
plain: ``*``, ``/`` and ``^``, an equation in most steps, 5 to `MAX_STEPS` of them.
"""

from __future__ import annotations

from collections.abc import Callable

from numpy.random import Generator

from c2faith.dataset.sources.families.algebra import linear_equation, linear_system, quadratic, recurrence
from c2faith.dataset.sources.families.arithmetic import fraction_sum, ledger, nested_expression, shopping
from c2faith.dataset.sources.families.integers import base_digits, euclid, power_remainder
from c2faith.dataset.sources.families.wording import MAX_STEPS, Worked

__all__ = ["FAMILIES", "MAX_STEPS", "Worked"]

FAMILIES: tuple[Callable[[Generator], Worked], ...] = (
    ledger,
    shopping,
    nested_expression,
    fraction_sum,
    linear_equation,
    linear_system,
    quadratic,
    recurrence,
    euclid,
    base_digits,
    power_remainder,
)
