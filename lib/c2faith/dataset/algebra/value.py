"""The value of an expression at a point: exact rationals where these suffice, else 50 digits; bounded in size."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import mpmath

from c2faith.dataset.algebra.parse import Tree

Number = Fraction | mpmath.mpf

# Larger numbers leave the exact rationals, or are not computed at all: that bounds the time of one value.
MAX_BITS, MAX_FACTORIAL, MAX_LOG = 20_000, 400, 1_000_000
POINTS, N_INTEGER = range(6), 3
"""Seeded points, integer ones first: C(n, k) has values only at integers, and (-1)^(2n) = 1 only there."""
_REAL = mpmath.MPContext()
_REAL.dps = 50
_TOLERANCE = _REAL.mpf(10) ** -35


class Undefined(ArithmeticError):  # noqa: N818 - an absence of value, not a mistake
    """The expression has no real value of bounded size at this point."""


def _need(condition: bool) -> None:
    if not condition:
        raise Undefined


@lru_cache(maxsize=1 << 14)
def assigned(point: int, *key: str) -> Fraction:
    """The positive number that a variable, subscripted variable or unknown function has at a point."""
    draw = random.Random(" ".join((str(point), *key)))
    if point < N_INTEGER:
        return Fraction(draw.randint(2, 30))
    return Fraction(draw.randint(1, 97), draw.randint(2, 19))


def value(tree: Tree, point: int) -> Number:
    """The value of an expression at a point; `Undefined` if there is none, or if it would take too long."""
    kind, *parts = tree
    if kind == "num":
        return parts[0]
    if kind == "var":
        return _real(_REAL.pi) if parts[0] == "pi" else assigned(point, parts[0])
    name = parts.pop(0) if kind in ("index", "call") else kind
    operands = [value(part, point) for part in parts]
    if kind == "index" or (kind == "call" and name not in _FUNCTIONS):
        return assigned(point, kind, name, *map(str, operands))
    try:
        found = (_FUNCTIONS if kind == "call" else _OPERATIONS)[name](*operands)
    except (ArithmeticError, ValueError, TypeError) as error:  # TypeError: a wrong number of arguments
        raise Undefined(str(error)) from error
    return _real(found) if isinstance(found, Fraction) and _bits(found) > MAX_BITS else found


def compare(left: Number, right: Number) -> int:
    """−1, 0 or 1 as `left` is less than, equal to or greater than `right`, to 35 digits where not exact."""
    difference = subtract(left, right)
    small = 0 if isinstance(difference, Fraction) else _TOLERANCE * max(1, abs(_real(left)), abs(_real(right)))
    return 0 if abs(difference) <= small else 1 if difference > 0 else -1


def _real(number: Number) -> mpmath.mpf:
    if isinstance(number, Fraction):
        return _REAL.mpf(number.numerator) / number.denominator
    return +number if isinstance(number, _REAL.mpf) else _REAL.mpf(number)


def _bits(number: Fraction) -> int:
    return max(number.numerator.bit_length(), number.denominator.bit_length())


def _whole(number: Number) -> int:
    _need(isinstance(number, Fraction) and number.denominator == 1)
    return number.numerator


def _arithmetic(operation: Callable) -> Callable[[Number, Number], Number]:
    def apply(left: Number, right: Number) -> Number:
        if isinstance(left, Fraction) and isinstance(right, Fraction):
            return operation(left, right)
        return operation(_real(left), _real(right))

    return apply


subtract, divide = _arithmetic(operator.sub), _arithmetic(operator.truediv)


def _modulo(number: Number, modulus: Number) -> Fraction:
    _need(_whole(modulus) > 0)
    return Fraction(_whole(number) % _whole(modulus))


def _power(base: Number, exponent: Number) -> Number:
    if base == 0:
        _need(exponent > 0)
        return Fraction(0)
    whole = isinstance(exponent, Fraction) and exponent.denominator == 1
    if whole and isinstance(base, Fraction) and _bits(base) * abs(exponent) <= MAX_BITS:
        return base ** int(exponent)
    _need(base > 0 or whole)
    _need(abs(_real(exponent)) * (1 + abs(_REAL.log(abs(_real(base))))) <= MAX_LOG)
    return _real(base) ** (int(exponent) if whole else _real(exponent))


def _root(radicand: Number, degree: Number = Fraction(2)) -> Number:
    if isinstance(radicand, Fraction) and degree == 2 and radicand >= 0:
        root = Fraction(math.isqrt(radicand.numerator), math.isqrt(radicand.denominator))
        if root * root == radicand:
            return root
    if degree == 3 and radicand < 0:
        return -_root(-radicand, degree)
    return _power(radicand, 1 / degree)


def _logarithm(number: Number) -> Number:
    _need(number > 0)
    return _REAL.log(_real(number))


def _transcendental(name: str) -> Callable[[Number], Number]:
    def apply(argument: Number) -> Number:
        _need(abs(argument) <= MAX_LOG)
        return getattr(_REAL, name)(_real(argument))

    return apply


def _of_whole(function: Callable[..., int], most: float = math.inf) -> Callable[..., Fraction]:
    def apply(*numbers: Number) -> Fraction:
        wholes = [_whole(number) for number in numbers]
        _need(wholes[0] <= most)
        return Fraction(function(*wholes))

    return apply


_OPERATIONS: dict[str, Callable[..., Number]] = {
    "+": _arithmetic(operator.add),
    "-": subtract,
    "*": _arithmetic(operator.mul),
    "/": divide,
    "^": _power,
    "mod": _modulo,
    "neg": operator.neg,
    "abs": abs,
    "!": _of_whole(math.factorial, MAX_FACTORIAL),
}
_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "sqrt": _root,
    "log": lambda number, base: _logarithm(number) / _logarithm(base),  # without a base it may be 10 or e
    "ln": _logarithm,
    "binom": _of_whole(math.comb, MAX_FACTORIAL),
    "min": lambda *numbers: min(numbers, key=_real),
    "max": lambda *numbers: max(numbers, key=_real),
    "gcd": _of_whole(math.gcd),
    "lcm": _of_whole(math.lcm),
    "floor": lambda number: Fraction(math.floor(number)),
    "ceil": lambda number: Fraction(math.ceil(number)),
    **{name: _transcendental(name) for name in ("sin", "cos", "tan", "exp")},
}
