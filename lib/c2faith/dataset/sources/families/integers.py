"""Divisibility: remainders, digits and powers."""

from __future__ import annotations

from numpy.random import Generator

from c2faith.dataset.sources.families.wording import Worked, pick, whole


def euclid(rng: Generator) -> Worked:
    """Greatest common divisor and least common multiple by Euclid's algorithm."""
    small, large = 0, whole(rng, 2, 9)
    for _ in range(whole(rng, 3, 9)):
        small, large = large, large * pick(rng, (1, 1, 2, 3)) + small
    if large == small:
        large += small
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
    """A number written in another base, and the sum of its digits there."""
    base = whole(rng, 2, 9)
    number = whole(rng, base**4, base**5 * (3 if base < 4 else 1))
    left, digits, steps = number, [], [f"We divide by {base} again and again and collect the remainders."]
    while left:
        digits.append(left % base)
        steps.append(
            f"{left} = {base} * {left // base} + {left % base}, so the next digit from the right is {left % base}."
        )
        left //= base
    written = "".join(map(str, reversed(digits)))
    steps += [
        f"The quotient is now 0, so {number} is written {written} in base {base}.",
        f"The sum of these digits is {' + '.join(map(str, reversed(digits)))} = {sum(digits)}.",
        f"The answer is {sum(digits)}.",
    ]
    return f"What is the sum of the digits of {number} when it is written in base {base}?", steps, str(sum(digits))


def power_remainder(rng: Generator) -> Worked:
    """A power's remainder, one factor at a time."""
    modulus, exponent = whole(rng, 5, 23), whole(rng, 5, 18)
    number = whole(rng, 2, modulus - 1)
    value, steps = (
        number,
        [f"We multiply by {number} again and again and keep only the remainder modulo {modulus}."],
    )
    for power in range(2, exponent + 1):
        product = value * number
        steps.append(
            f"{number}^{power} leaves the remainder of {value} * {number} = {product}, "
            f"and {product} = {product // modulus} * {modulus} + {product % modulus}."
        )
        value = product % modulus
    steps.append(f"So the remainder is {value}.")
    return f"What is the remainder when {number}^{exponent} is divided by {modulus}?", steps, str(value)
