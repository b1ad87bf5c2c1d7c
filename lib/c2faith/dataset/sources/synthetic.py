"""Arithmetic and algebra chains whose every step is right by construction; a larger limit only adds chains.

A family makes up a problem with its worked solution: 5 to `MAX_STEPS` plain steps, every number computed exactly. A
new one is a function and its row in `FAMILIES` (the draw of a family then gives other chains).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from math import gcd, lcm
from pathlib import Path
from typing import Any

from numpy.random import Generator

from c2faith.dataset.chains import Dropped, Request, chain, no_path
from c2faith.records import Chain, InputError, rng

MAX_STEPS = 20
Worked = tuple[str, list[str], str]  # question, steps, answer


def inputs(path: str | None) -> dict[str, Path]:
    """Nothing is read."""
    no_path(path, "synthetic")
    return {}


def read(files: Mapping[str, Path], request: Request, dropped: Dropped) -> Iterator[Chain]:
    """`request.limit` chains of different problems, families in turn by chance."""
    if request.limit is None:
        raise InputError("LIMIT=all: synthetic chains have no end; say how many")
    if request.min_steps > MAX_STEPS:
        raise InputError(f"MIN_STEPS={request.min_steps}: synthetic chains have at most {MAX_STEPS} steps")
    problems: set[str] = set()
    while len(problems) < request.limit:
        made = numbered(request.seed, dropped.read)
        dropped.read += 1
        if len(made.steps) < request.min_steps:
            dropped.chains["too few steps"] += 1
        elif made.problem_id in problems:
            dropped.chains["problem made before"] += 1
        else:
            problems.add(made.problem_id)
            yield made


def numbered(seed: int, index: int) -> Chain:
    """A chain that depends on the seed and its number alone."""
    generator = rng(seed, "synthetic", str(index))
    question, steps, answer = pick(generator, FAMILIES)(generator)
    return chain("synthetic", question, steps, answer=answer)


def pick(rng: Generator, options: Sequence[Any]) -> Any:
    return options[int(rng.integers(len(options)))]


def whole(rng: Generator, low: int, high: int) -> int:
    return int(rng.integers(low, high + 1))


def plus(value: int) -> str:
    return f" + {value}" if value > 0 else f" - {-value}" if value else ""


def times(factor: int, name: str) -> str:
    return {1: name, -1: f"-{name}"}.get(factor, f"{factor}{name}")


def operand(value: int) -> str:
    return f"({value})" if value < 0 else str(value)


_LEDGERS = (
    ("A bus leaves with {} passengers.", "At stop {}, {} people get {}", ("on", "off"), "passengers", "on the bus"),
    ("A shelf holds {} books.", "In hour {}, {} books are {}", ("returned", "borrowed"), "books", "on the shelf"),
    ("An account holds {} dollars.", "In week {}, {} dollars are {}", ("paid in", "taken out"), "dollars", "in it"),
    ("A store has {} crates.", "On day {}, {} crates are {}", ("delivered", "shipped"), "crates", "in the store"),
)
_GOODS = ("notebooks", "pencils", "apples", "candles", "mugs", "plants", "postcards", "lamps", "scarves", "puzzles")


def ledger(rng: Generator) -> Worked:
    opening, event, (more, less), noun, where = pick(rng, _LEDGERS)
    total, n_events = whole(rng, 15, 90), whole(rng, 3, 18)
    question, steps = [opening.format(total)], [f"At first there are {total} {noun} {where}."]
    for number in range(1, n_events + 1):
        change = whole(rng, 2, 25) * (1 if total < 30 else pick(rng, (1, -1)))
        line = event.format(number, abs(change), more if change > 0 else less)
        question.append(f"{line}.")
        steps.append(f"{line}, so there are now {total}{plus(change)} = {total + change} {noun} {where}.")
        total += change
    question.append(f"How many {noun} are {where} in the end?")
    return " ".join(question), [*steps, f"Therefore {total} {noun} are {where} in the end."], str(total)


def shopping(rng: Generator) -> Worked:
    goods = [str(name) for name in rng.permutation(_GOODS)[: whole(rng, 2, 7)]]
    counts, prices = [[whole(rng, 2, 9) for _ in goods] for _ in range(2)]
    percent = pick(rng, (10, 20, 25, 50))
    bill = list(zip(goods, counts, prices, strict=True))
    listed = ", ".join(f"{n} {name} at {price} dollars each" for name, n, price in bill)
    steps = [f"The {name} cost {n} * {price} = {n * price} dollars." for name, n, price in bill]
    total = counts[0] * prices[0]
    for name, n, price in bill[1:]:
        steps.append(f"Adding the {name}, the bill comes to {total} + {n * price} = {total + n * price} dollars.")
        total += n * price
    discount, paid = Fraction(total * percent, 100), total // 10 * 10 + 10
    change = paid - (total - discount)
    steps += [
        f"The discount is {total} * {percent}/100 = {discount} dollars.",
        f"After the discount the price is {total} - {discount} = {total - discount} dollars.",
        f"The change from {paid} dollars is {paid} - {total - discount} = {change} dollars.",
        f"So the buyer gets {change} dollars back.",
    ]
    sale = f"Someone buys {listed}. There is a discount of {percent} percent on the whole bill."
    return f"{sale} How many dollars of change are due from {paid} dollars?", steps, str(change)


def nested_expression(rng: Generator) -> Worked:
    value = whole(rng, 2, 20)
    values, operations = [value], []
    for _ in range(whole(rng, 4, 18)):
        operator, number = pick(rng, "++--*"), whole(rng, 2, 12)
        if abs(value) > 60:
            operator, number = ("-" if value > 0 else "+"), abs(value) - whole(rng, 1, 9)
        value = {"+": value + number, "-": value - number, "*": value * number}[operator]
        values.append(value)
        operations.append(f"{operator} {number}")

    def from_here(done: int) -> str:
        first = f"{values[done]} {operations[done]}"
        return reduce(lambda inner, operation: f"({inner}) {operation}", operations[done + 1 :], first)

    steps = []
    for done, operation in enumerate(operations):
        lead = pick(rng, ("Next,", "Working outwards,", "Now")) if done else "The innermost bracket gives"
        left = f", which leaves {from_here(done + 1)}" if operations[done + 1 :] else ""
        steps.append(f"{lead} {values[done]} {operation} = {values[done + 1]}{left}.")
    return f"Evaluate {from_here(0)}.", [*steps, f"The value of the expression is {value}."], str(value)


def fraction_sum(rng: Generator) -> Worked:
    below = [pick(rng, (2, 3, 4, 5, 6, 8, 9, 10, 12, 15)) for _ in range(whole(rng, 2, 8))]
    common = lcm(*below)
    fractions = [(whole(rng, 1, denominator - 1), denominator) for denominator in below]
    scaled = [n * common // d for n, d in fractions]
    steps = [f"The least common denominator of {', '.join(map(str, below))} is {common}."]
    for (n, d), s in zip(fractions, scaled, strict=True):
        steps.append(f"{pick(rng, ('We have', 'Over this denominator,', 'Likewise'))} {n}/{d} = {s}/{common}.")
    total = scaled[0]
    for s in scaled[1:]:
        steps.append(f"Adding the next one, {total}/{common} + {s}/{common} = {total + s}/{common}.")
        total += s
    answer, greatest = Fraction(total, common), f"greatest common divisor of {total} and {common}"
    steps.append(f"The {greatest} is {gcd(total, common)}, so {total}/{common} = {answer}.")
    terms = " + ".join(f"{n}/{d}" for n, d in fractions)
    return f"Write {terms} as a single fraction in lowest terms.", [*steps, f"The sum is {answer}."], str(answer)


def linear_equation(rng: Generator) -> Worked:
    x, a, d = whole(rng, -9, 12), whole(rng, 5, 12), whole(rng, 2, 4) * pick(rng, (1, -1))
    b, c = whole(rng, 1, 9) * pick(rng, (1, -1)), whole(rng, 1, 20)
    c += a * b + c == 0
    constant = a * b + c
    e = a * x + constant - d * x
    right = f"{times(d, 'x')}{plus(e)}"
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
    return f"Solve {a}(x{plus(b)}){plus(c)} = {right} for x.", [*steps, f"The solution is x = {x}."], str(x)


def linear_system(rng: Generator) -> Worked:
    x, y = whole(rng, -8, 9), whole(rng, 1, 9) * pick(rng, (1, -1))
    a, b, c, d = (whole(rng, 2, 7) for _ in range(4))
    d += a * d == b * c
    e, f = a * x + b * y, c * x + d * y
    steps = [
        f"Multiplying the first equation by {c} gives {a * c}x + {b * c}y = {e * c}.",
        f"Multiplying the second equation by {a} gives {a * c}x + {a * d}y = {f * a}.",
        f"Subtracting the second from the first leaves {times(b * c - a * d, 'y')} = {e * c - f * a}.",
        f"So y = {y}.",
        f"Putting y = {y} into the first equation gives {a}x + {b} * {operand(y)} = {e}.",
        f"Since {b} * {operand(y)} = {b * y}, this is {a}x = {e - b * y}.",
        f"Dividing by {a}, x = {x}.",
        f"As a check, the second equation holds: {c} * {operand(x)} + {d} * {operand(y)} = {f}.",
        f"The sum asked for is {x}{plus(y)} = {x + y}.",
    ]
    return f"If {a}x + {b}y = {e} and {c}x + {d}y = {f}, what is x + y?", steps, str(x + y)


def quadratic(rng: Generator) -> Worked:
    low, gap = whole(rng, -25, 20), whole(rng, 1, 30)
    low -= (low == 0) + (low + gap == 0)
    low -= low == 0
    high, b, c = low + gap, -(low + low + gap), low * (low + gap)
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
    factor = pick(rng, (1, 2, 3, -1, -2))
    length, shift = whole(rng, 5, 8 if abs(factor) > 1 else 19), whole(rng, 1, 9) * pick(rng, (1, -1))
    value = whole(rng, 1, 9)
    given = f"starts with x_1 = {value} and satisfies x_(n+1) = {factor} * x_n{plus(shift)}"
    steps = [f"The first term is x_1 = {value}."]
    for n in range(1, length):
        after = factor * value + shift
        steps.append(f"From x_{n} = {value} we get x_{n + 1} = {factor} * {operand(value)}{plus(shift)} = {after}.")
        value = after
    steps.append(f"Hence x_{length} = {value}.")
    return f"A sequence {given} for n >= 1. Find x_{length}.", steps, str(value)


def euclid(rng: Generator) -> Worked:
    small, large = 0, whole(rng, 2, 9)
    for _ in range(whole(rng, 3, 9)):
        small, large = large, large * pick(rng, (1, 1, 2, 3)) + small
    large += small * (large == small)
    a, b = large, small
    steps = [f"We apply Euclid's algorithm to {a} and {b}."]
    while b:
        steps.append(f"Dividing {a} by {b}, we get {a} = {a // b} * {b} + {a % b}.")
        a, b = b, a % b
    multiple = large * small // a
    steps += [
        f"The last remainder that is not zero is {a}, so gcd({large}, {small}) = {a}.",
        f"The product of the two numbers is {large} * {small} = {large * small}.",
        f"Dividing the product by the greatest common divisor, {large * small} / {a} = {multiple}.",
        f"So the least common multiple is {multiple}.",
    ]
    return f"Find the least common multiple of {large} and {small}.", steps, str(multiple)


def base_digits(rng: Generator) -> Worked:
    base = whole(rng, 2, 9)
    number = whole(rng, base**4, base**5 * (3 if base < 4 else 1))
    left, digits, steps = number, [], [f"We divide by {base} again and again and collect the remainders."]
    while left:
        digit = str(left % base)
        digits.insert(0, digit)
        steps.append(f"{left} = {base} * {left // base} + {digit}, so the next digit from the right is {digit}.")
        left //= base
    total = sum(map(int, digits))
    steps += [
        f"The quotient is now 0, so {number} is written {''.join(digits)} in base {base}.",
        f"The sum of these digits is {' + '.join(digits)} = {total}.",
        f"The answer is {total}.",
    ]
    return f"What is the sum of the digits of {number} when it is written in base {base}?", steps, str(total)


def power_remainder(rng: Generator) -> Worked:
    modulus, exponent = whole(rng, 5, 23), whole(rng, 5, 18)
    number = value = whole(rng, 2, modulus - 1)
    steps = [f"We multiply by {number} again and again and keep only the remainder modulo {modulus}."]
    for power in range(2, exponent + 1):
        product = value * number
        division = f"{product} = {product // modulus} * {modulus} + {product % modulus}"
        steps.append(f"{number}^{power} leaves the remainder of {value} * {number} = {product}, and {division}.")
        value = product % modulus
    question = f"What is the remainder when {number}^{exponent} is divided by {modulus}?"
    return question, [*steps, f"So the remainder is {value}."], str(value)


FAMILIES: tuple[Callable[[Generator], Worked], ...] = (
    ledger, shopping, nested_expression, fraction_sum, linear_equation, linear_system, quadratic, recurrence,
    euclid, base_digits, power_remainder,
)  # fmt: skip
