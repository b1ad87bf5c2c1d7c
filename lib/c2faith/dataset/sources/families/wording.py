"""Drawing numbers and writing them down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from numpy.random import Generator

Worked = tuple[str, list[str], str]  # question, steps, answer
MAX_STEPS = 20
Option = TypeVar("Option")


def pick(rng: Generator, options: Sequence[Option]) -> Option:
    """One of the options."""
    return options[int(rng.integers(len(options)))]


def whole(rng: Generator, low: int, high: int) -> int:
    """A whole number from `low` to `high`, both included."""
    return int(rng.integers(low, high + 1))


def plus(value: int) -> str:
    """+ 5, − 5 or nothing, as it follows a term."""
    return f" + {value}" if value > 0 else f" - {-value}" if value else ""


def times(factor: int, name: str) -> str:
    """3x, x, -x."""
    return {1: name, -1: f"-{name}"}.get(factor, f"{factor}{name}")


def operand(value: int) -> str:
    """A number as it stands after an operator."""
    return f"({value})" if value < 0 else str(value)
