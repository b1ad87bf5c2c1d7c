"""Word problems, expressions and fractions, worked out number by number."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm

from numpy.random import Generator

from c2faith.dataset.sources.families.wording import Worked, pick, plus, whole

_LEDGERS = (
    ("A bus leaves with {} passengers.", "At stop {}, {} people get {}", ("on", "off"), "passengers", "on the bus"),
    ("A shelf holds {} books.", "In hour {}, {} books are {}", ("returned", "borrowed"), "books", "on the shelf"),
    ("An account holds {} dollars.", "In week {}, {} dollars are {}", ("paid in", "taken out"), "dollars", "in it"),
    ("A store has {} crates.", "On day {}, {} crates are {}", ("delivered", "shipped"), "crates", "in the store"),
)


def ledger(rng: Generator) -> Worked:
    """A running total of arrivals and departures."""
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


_GOODS = ("notebooks", "pencils", "apples", "candles", "mugs", "plants", "postcards", "lamps", "scarves", "puzzles")


def shopping(rng: Generator) -> Worked:
    """Subtotals, a sum, a discount and the change."""
    goods = [str(name) for name in rng.permutation(_GOODS)[: whole(rng, 2, 7)]]
    counts, prices = [[whole(rng, 2, 9) for _ in goods] for _ in range(2)]
    percent = pick(rng, (10, 20, 25, 50))
    costs = [count * price for count, price in zip(counts, prices, strict=True)]
    listed = ", ".join(f"{n} {name} at {p} dollars each" for n, name, p in zip(counts, goods, prices, strict=True))
    steps = [
        f"The {name} cost {n} * {p} = {cost} dollars."
        for n, name, p, cost in zip(counts, goods, prices, costs, strict=True)
    ]
    total = costs[0]
    for name, cost in zip(goods[1:], costs[1:], strict=True):
        steps.append(f"Adding the {name}, the bill comes to {total} + {cost} = {total + cost} dollars.")
        total += cost
    discount = Fraction(total * percent, 100)
    paid = total // 10 * 10 + 10
    change = paid - (total - discount)
    steps += [
        f"The discount is {total} * {percent}/100 = {discount} dollars.",
        f"After the discount the price is {total} - {discount} = {total - discount} dollars.",
        f"The change from {paid} dollars is {paid} - {total - discount} = {change} dollars.",
        f"So the buyer gets {change} dollars back.",
    ]
    question = (
        f"Someone buys {listed}. There is a discount of {percent} percent on the whole bill. "
        f"How many dollars of change are due from {paid} dollars?"
    )
    return question, steps, str(change)


def nested_expression(rng: Generator) -> Worked:
    """A bracketed expression, evaluated from the inside."""
    start = value = whole(rng, 2, 20)
    operations: list[tuple[str, int, int]] = []
    for _ in range(whole(rng, 4, 18)):
        operator, operand = pick(rng, "++--*"), whole(rng, 2, 12)
        if abs(value) > 60:
            operator, operand = ("-" if value > 0 else "+"), abs(value) - whole(rng, 1, 9)
        value = {"+": value + operand, "-": value - operand, "*": value * operand}[operator]
        operations.append((operator, operand, value))

    def written(first: int, rest: Sequence[tuple[str, int, int]]) -> str:
        text = str(first)
        for position, (operator, operand, _) in enumerate(rest):
            text = f"({text}) {operator} {operand}" if position else f"{text} {operator} {operand}"
        return text

    steps, current = [], start
    for position, (operator, operand, after) in enumerate(operations, start=1):
        lead = pick(rng, ("Next,", "Working outwards,", "Now")) if steps else "The innermost bracket gives"
        rest = operations[position:]
        left = f", which leaves {written(after, rest)}" if rest else ""
        steps.append(f"{lead} {current} {operator} {operand} = {after}{left}.")
        current = after
    steps.append(f"The value of the expression is {value}.")
    return f"Evaluate {written(start, operations)}.", steps, str(value)


def fraction_sum(rng: Generator) -> Worked:
    """Fractions brought to their least common denominator and added."""
    denominators = [pick(rng, (2, 3, 4, 5, 6, 8, 9, 10, 12, 15)) for _ in range(whole(rng, 2, 8))]
    numerators = [whole(rng, 1, d - 1) for d in denominators]
    common = lcm(*denominators)
    scaled = [n * common // d for n, d in zip(numerators, denominators, strict=True)]
    steps = [f"The least common denominator of {', '.join(map(str, denominators))} is {common}."]
    steps += [
        f"{pick(rng, ('We have', 'Over this denominator,', 'Likewise'))} {n}/{d} = {s}/{common}."
        for n, d, s in zip(numerators, denominators, scaled, strict=True)
    ]
    total = scaled[0]
    for s in scaled[1:]:
        steps.append(f"Adding the next one, {total}/{common} + {s}/{common} = {total + s}/{common}.")
        total += s
    answer = Fraction(total, common)
    divisor = gcd(total, common)
    steps.append(
        f"The greatest common divisor of {total} and {common} is {divisor}, so {total}/{common} = {answer}."
    )
    steps.append(f"The sum is {answer}.")
    terms = " + ".join(f"{n}/{d}" for n, d in zip(numerators, denominators, strict=True))
    return f"Write {terms} as a single fraction in lowest terms.", steps, str(answer)
