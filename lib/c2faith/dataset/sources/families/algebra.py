"""Equations and sequences, solved and checked."""

from __future__ import annotations

from numpy.random import Generator

from c2faith.dataset.sources.families.wording import Worked, operand, pick, plus, times, whole


def linear_equation(rng: Generator) -> Worked:
    """a(x + b) + c = dx + e: expand, collect, divide, and check."""
    x, a, d = whole(rng, -9, 12), whole(rng, 5, 12), whole(rng, 2, 4) * pick(rng, (1, -1))
    b, c = whole(rng, 1, 9) * pick(rng, (1, -1)), whole(rng, 1, 20)
    c += a * b + c == 0
    constant = a * b + c
    e = a * x + constant - d * x
    left, right = f"{a}(x{plus(b)}){plus(c)}", f"{times(d, 'x')}{plus(e)}"
    moved = f"Subtracting {d}x from" if d > 0 else f"Adding {-d}x to"
    then = f"Subtracting {constant} from" if constant > 0 else f"Adding {-constant} to"
    steps = [
        f"Expanding the bracket, {a}(x{plus(b)}) = {a}x{plus(a * b)}.",
        f"The left side becomes {a}x{plus(a * b)}{plus(c)} = {a}x{plus(constant)}.",
        f"So the equation reads {a}x{plus(constant)} = {right}.",
        f"{moved} both sides gives {times(a - d, 'x')}{plus(constant)} = {e}.",
        f"{then} both sides gives {times(a - d, 'x')} = {e - constant}.",
        f"Dividing by {a - d}, x = {x}." if a - d > 1 else f"That is x = {x}.",
    ]
    if pick(rng, (True, False)):
        steps += [
            f"To check, the left side is {a} * ({x}{plus(b)}){plus(c)} = {a * (x + b) + c}.",
            f"The right side is {d} * {operand(x)}{plus(e)} = {d * x + e}.",
            "Both sides agree.",
        ]
    return f"Solve {left} = {right} for x.", [*steps, f"The solution is x = {x}."], str(x)


def linear_system(rng: Generator) -> Worked:
    """Two equations in x and y, by elimination."""
    x, y = whole(rng, -8, 9), whole(rng, 1, 9) * pick(rng, (1, -1))
    a, b, c, d = (whole(rng, 2, 7) for _ in range(4))
    d += a * d == b * c
    e, f = a * x + b * y, c * x + d * y
    ratio = b * c - a * d
    steps = [
        f"Multiplying the first equation by {c} gives {a * c}x + {b * c}y = {e * c}.",
        f"Multiplying the second equation by {a} gives {a * c}x + {a * d}y = {f * a}.",
        f"Subtracting the second from the first leaves {times(ratio, 'y')} = {e * c - f * a}.",
        f"So y = {y}.",
        f"Putting y = {y} into the first equation gives {a}x + {b} * {operand(y)} = {e}.",
        f"Since {b} * {operand(y)} = {b * y}, this is {a}x = {e - b * y}.",
        f"Dividing by {a}, x = {x}.",
        f"As a check, the second equation holds: {c} * {operand(x)} + {d} * {operand(y)} = {f}.",
        f"The sum asked for is {x}{plus(y)} = {x + y}.",
    ]
    return f"If {a}x + {b}y = {e} and {c}x + {d}y = {f}, what is x + y?", steps, str(x + y)


def quadratic(rng: Generator) -> Worked:
    """A monic quadratic with two whole roots, by factoring."""
    low, gap = whole(rng, -25, 20), whole(rng, 1, 30)
    low -= (low == 0) + (low + gap == 0)
    low -= low == 0
    high = low + gap
    b, c = -(low + high), low * high
    middle = f" {'+' if b > 0 else '-'} {times(abs(b), 'x')}" if b else ""
    polynomial = f"x^2{middle}{plus(c)}"
    steps = [
        f"We look for two numbers whose product is {c} and whose sum is {b}.",
        f"The numbers {-low} and {-high} have the product {-low} * {operand(-high)} = {c}.",
        f"Their sum is {-low}{plus(-high)} = {b}.",
        f"So {polynomial} = (x{plus(-low)})(x{plus(-high)}).",
        "A product is zero only if one of its factors is zero.",
        f"The first factor is zero when x = {low}.",
        f"The second factor is zero when x = {high}.",
        f"Since {high} > {low}, the larger root is {high}.",
        f"The larger root exceeds the smaller by {high} - {operand(low)} = {gap}.",
    ]
    return f"By how much does the larger root of {polynomial} = 0 exceed the smaller one?", steps, str(gap)


def recurrence(rng: Generator) -> Worked:
    """A term of a sequence given by a linear recurrence."""
    factor = pick(rng, (1, 2, 3, -1, -2))
    length, shift = whole(rng, 5, 8 if abs(factor) > 1 else 19), whole(rng, 1, 9) * pick(rng, (1, -1))
    value = whole(rng, 1, 9)
    rule = f"x_(n+1) = {factor} * x_n{plus(shift)}"
    question = f"A sequence starts with x_1 = {value} and satisfies {rule} for n >= 1. Find x_{length}."
    steps = [f"The first term is x_1 = {value}."]
    for n in range(1, length):
        after = factor * value + shift
        steps.append(f"From x_{n} = {value} we get x_{n + 1} = {factor} * {operand(value)}{plus(shift)} = {after}.")
        value = after
    return question, [*steps, f"Hence x_{length} = {value}."], str(value)
