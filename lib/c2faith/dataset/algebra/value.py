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

MAX_BITS, MAX_FACTORIAL, MAX_LOG = 20_000, 400, 1_000_000
"""Larger numbers leave the exact rationals, or are not computed at all: that bounds the time of one value."""
_REAL = mpmath.MPContext()
_REAL.dps = 50
_TOLERANCE = _REAL.mpf(10) ** -35


class Undefined(ArithmeticError):  # noqa: N818 - an absence of value, not a mistake
    """The expression has no real value of bounded size at this point."""


class Point:
    """One seeded assignment of positive numbers to variables, subscripted variables and unknown functions."""

    def __init__(self, seed: int, *, integer: bool) -> None:
        self.seed, self.integer = seed, integer
        self.at = lru_cache(maxsize=4096)(self._draw)

    def _draw(self, *key: str) -> Fraction:
        draw = random.Random(" ".join((str(self.seed), *key)))
        return Fraction(draw.randint(2, 30)) if self.integer else Fraction(draw.randint(1, 97), draw.randint(2, 19))


POINTS = tuple(Point(seed, integer=seed < 3) for seed in range(6))
"""Three integer and three rational points: C(n, k) has values only at integers, and (-1)^(2n) = 1 only there."""


def value(tree: Tree, point: Point) -> Number:
    """The value of an expression at a point.

    Raises
    ------
    Undefined
        If there is none, or if it would take too long.
    """
    kind, *parts = tree
    if kind == "num":
        return parts[0]
    if kind == "var":
        return _real(_REAL.pi) if parts[0] == "pi" else point.at(parts[0])
    name = parts.pop(0) if kind in ("index", "call") else kind
    operands = [value(part, point) for part in parts]
    if kind == "index" or (kind == "call" and name not in _FUNCTIONS):
        return point.at(kind, name, *map(str, operands))
    try:
        return _bounded((_FUNCTIONS if kind == "call" else _OPERATIONS)[name](*operands))
    except (ArithmeticError, ValueError, TypeError) as error:  # TypeError: a wrong number of arguments
        raise Undefined(str(error)) from error


def _real(number: Number) -> mpmath.mpf:
    if isinstance(number, Fraction):
        return _REAL.mpf(number.numerator) / number.denominator
    return +number if isinstance(number, _REAL.mpf) else _REAL.mpf(number)


def _bounded(number: Number) -> Number:
    if (
        isinstance(number, Fraction)
        and max(number.numerator.bit_length(), number.denominator.bit_length()) > MAX_BITS
    ):
        return _real(number)
    return number


def _arithmetic(operation: Callable) -> Callable[[Number, Number], Number]:
    def apply(left: Number, right: Number) -> Number:
        if isinstance(left, Fraction) and isinstance(right, Fraction):
            return operation(left, right)
        return operation(_real(left), _real(right))

    return apply


def divide(left: Number, right: Number) -> Number:
    if right == 0:
        raise Undefined("division by zero")
    return _arithmetic(operator.truediv)(left, right)


def _power(base: Number, exponent: Number) -> Number:
    if base == 0:
        if exponent <= 0:
            raise Undefined("0 to a power that is not positive")
        return Fraction(0)
    whole = isinstance(exponent, Fraction) and exponent.denominator == 1
    if whole and isinstance(base, Fraction):
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if bits * abs(exponent) <= MAX_BITS:
            return base ** int(exponent)
    if abs(_real(exponent)) * (1 + abs(_REAL.log(abs(_real(base))))) > MAX_LOG or (base < 0 and not whole):
        raise Undefined("no bounded real power")
    return _real(base) ** (int(exponent) if whole else _real(exponent))


def _root(radicand: Number, degree: Number = Fraction(2)) -> Number:
    if isinstance(radicand, Fraction) and degree == 2 and radicand >= 0:
        root = Fraction(math.isqrt(radicand.numerator), math.isqrt(radicand.denominator))
        if root * root == radicand:
            return root
    if degree == 3 and radicand < 0:
        return -_root(-radicand, degree)
    return _power(radicand, 1 / degree)


def _whole(number: Number) -> int:
    if not isinstance(number, Fraction) or number.denominator != 1:
        raise Undefined("not a whole number")
    return number.numerator


def _factorial(number: Number) -> Fraction:
    if not 0 <= _whole(number) <= MAX_FACTORIAL:
        raise Undefined("factorial of a negative or large number")
    return Fraction(math.factorial(_whole(number)))


def _binomial(n: Number, k: Number) -> Fraction:
    if not 0 <= _whole(n) <= MAX_FACTORIAL or _whole(k) < 0:
        raise Undefined("binomial coefficient out of range")
    return Fraction(math.comb(_whole(n), _whole(k)))


def modulo(number: Number, modulus: Number) -> Fraction:
    if _whole(modulus) <= 0:
        raise Undefined("modulus that is not positive")
    return Fraction(_whole(number) % _whole(modulus))


def _logarithm(number: Number, base: Number | None = None) -> Number:
    if base is None or number <= 0 or base <= 0 or base == 1:
        raise Undefined("logarithm without a base, or of no positive number")
    return _REAL.log(_real(number)) / _REAL.log(_real(base))


def _natural_logarithm(number: Number) -> Number:
    if number <= 0:
        raise Undefined("logarithm of no positive number")
    return _REAL.log(_real(number))


def _transcendental(name: str) -> Callable[[Number], Number]:
    def apply(argument: Number) -> Number:
        if abs(argument) > MAX_LOG:
            raise Undefined("argument too large")
        return getattr(_REAL, name)(_real(argument))

    return apply


def _of_whole(function: Callable[..., int]) -> Callable[..., Fraction]:
    return lambda *numbers: Fraction(function(*map(_whole, numbers)))


subtract = _arithmetic(operator.sub)


def _smallest(*numbers: Number) -> Number:
    return min(numbers, key=_real)


def _largest(*numbers: Number) -> Number:
    return max(numbers, key=_real)


_OPERATIONS: dict[str, Callable[..., Number]] = {
    "+": _arithmetic(operator.add),
    "-": subtract,
    "*": _arithmetic(operator.mul),
    "/": divide,
    "^": _power,
    "mod": modulo,
    "neg": operator.neg,
    "abs": abs,
    "!": _factorial,
}
_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "sqrt": _root,
    "log": _logarithm,
    "ln": _natural_logarithm,
    "binom": _binomial,
    "min": _smallest,
    "max": _largest,
    "gcd": _of_whole(math.gcd),
    "lcm": _of_whole(math.lcm),
    "floor": lambda number: Fraction(math.floor(number)),
    "ceil": lambda number: Fraction(math.ceil(number)),
    **{name: _transcendental(name) for name in ("sin", "cos", "tan", "exp")},
}


def names(tree: Tree) -> set[str]:
    """The variables and unknown functions of an expression (π is a number)."""
    kind, *parts = tree
    if kind == "num" or tree == ("var", "pi"):
        return set()
    own = {parts[0]} if kind in ("var", "index") or (kind == "call" and parts[0] not in _FUNCTIONS) else set()
    return own.union(*(names(part) for part in parts if isinstance(part, tuple)))


def compare(left: Number, right: Number) -> int:
    """−1, 0 or 1 as `left` is less than, equal to or greater than `right`, to 35 digits where not exact."""
    difference = subtract(left, right)
    small = 0 if isinstance(difference, Fraction) else _TOLERANCE * max(1, abs(_real(left)), abs(_real(right)))
    return 0 if abs(difference) <= small else 1 if difference > 0 else -1
