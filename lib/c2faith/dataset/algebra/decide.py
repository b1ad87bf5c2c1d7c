"""Decide what can be decided about mathematical statements: their truth, and whether two say the same.

Nothing is simplified symbolically, because that can take forever. Expressions are evaluated at seeded sample
points: two that agree at every point are taken as equal, which for polynomials is wrong with a probability far
below that of misreading the text (Schwartz-Zippel lemma).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from c2faith.dataset.algebra.parse import Reading, Tree, readings
from c2faith.dataset.algebra.text import Statement
from c2faith.dataset.algebra.value import (
    POINTS,
    Number,
    Point,
    Undefined,
    compare,
    divide,
    modulo,
    names,
    subtract,
    value,
)

Truth = Literal["true", "false", "open"]
Link = tuple[str, Tree, Tree]
_HOLDING = {"=": (0,), "≠": (-1, 1), "<": (-1,), ">": (1,), "≤": (-1, 0), "≥": (0, 1)}
_FLIPPED = {">": "<", "≥": "≤"}


def _holds(link: Link, modulus: Tree | None, point: Point) -> bool:
    relation, *sides = link
    left, right = (value(side, point) for side in sides)
    if relation in ("|", "∤"):
        return (modulo(right, abs(left)) == 0) == (relation == "|")
    if relation == "≡":
        return modulo(subtract(left, right), value(modulus, point)) == 0
    return compare(left, right) in _HOLDING[relation]


def _outcomes(reading: Reading, link: Link, points: Sequence[Point] = POINTS) -> list[bool]:
    """Whether a link holds, at each point where it is defined."""
    found = []
    for point in points:
        try:
            found.append(_holds(link, reading.modulus, point))
        except Undefined:
            continue
    return found


def link_truth(reading: Reading, link: Link) -> Truth:
    """``true`` or ``false`` for a link without variables, ``true`` for an identity, else ``open``.

    An equation with variables that fails at some point may still hold for the ones that are meant, and so may an
    inequality that holds at all points fail: both are open. So is ≈, which does not say how near.
    """
    if link[0] == "≈":
        return "open"
    if not names(link[1]) and not names(link[2]):
        outcomes = _outcomes(reading, link, POINTS[:1])
        return "open" if not outcomes else "true" if outcomes[0] else "false"
    if link[0] not in ("=", "≡", "|"):
        return "open"
    outcomes = _outcomes(reading, link)
    return "true" if len(outcomes) >= 3 and all(outcomes) else "open"


def fails_everywhere(reading: Reading, link: Link) -> bool:
    """Whether an equation holds at no sample point: then it is no identity, though it may have solutions."""
    outcomes = _outcomes(reading, link)
    return len(outcomes) >= 3 and not any(outcomes)


def truth(statement: Statement) -> Truth:
    """The truth of a whole statement: ``true`` in some reading, ``false`` in every one, else ``open``.

    >>> from c2faith.dataset.algebra import statements
    >>> [truth(s) for s in statements("2+2=4, 5!=24, (a+b)^2=a^2+2ab+b^2, x=3, 7 | 91, 3<2")]
    ['true', 'false', 'true', 'open', 'true', 'false']
    """
    verdicts = {_reading_truth(reading) for reading in readings(statement)}
    return "true" if "true" in verdicts else "false" if verdicts == {"false"} else "open"


def _reading_truth(reading: Reading) -> Truth:
    truths = {link_truth(reading, link) for link in reading.links}
    if "false" in truths:
        return "false"
    return "true" if truths == {"true"} else "open"


def equivalent(one: Statement, other: Statement) -> bool:
    """Whether two statements say the same in some reading: equal expressions, or the same relations.

    Relations may be turned round (a < b, b > a), scaled (x = y, 2x = 2y) or, in a chain of equalities, reordered.

    >>> from c2faith.dataset.algebra import statements
    >>> [equivalent(*statements(text)) for text in ("a+b, b+a", "2/4, 1/2", "x<y, y>x", "x=3, x=4", "2x=4, x=2")]
    [True, True, True, False, True]
    """
    return any(_same(a, b) for a in readings(one) for b in readings(other))


def _same(one: Reading, other: Reading) -> bool:
    if len(one.sides) != len(other.sides):
        return False
    if set(one.relations + other.relations) <= {"="}:
        these, those = (list(map(_values, reading.sides)) for reading in (one, other))
        matched = all(any(_agree(a, b) for b in those) for a in these)
        if matched and all(any(_agree(a, b) for a in these) for b in those):
            return True
    links = list(map(_oriented, one.links))
    return any(
        len(links) > 0 and all(map(_same_link, links, candidate))
        for candidate in (list(map(_oriented, other.links)), list(map(_oriented, other.links))[::-1])
    )


def _oriented(link: Link) -> Link:
    relation, left, right = link
    return (_FLIPPED[relation], right, left) if relation in _FLIPPED else link


def _values(tree: Tree) -> list[Number | None]:
    found: list[Number | None] = []
    for point in POINTS:
        try:
            found.append(value(tree, point))
        except Undefined:
            found.append(None)
    return found


def _agree(one: list[Number | None], other: list[Number | None]) -> bool:
    both = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    return len(both) >= 3 and all(compare(a, b) == 0 for a, b in both)


def _same_link(one: Link, other: Link) -> bool:
    if one[0] != other[0]:
        return False
    sides = [[_values(tree) for tree in link[1:]] for link in (one, other)]
    if all(map(_agree, *sides)) or (one[0] in ("=", "≠") and all(map(_agree, sides[0], sides[1][::-1]))):
        return True
    if one[0] not in ("=", "≠", "<", "≤") or not (names(one[1]) | names(one[2])):
        return False
    ratios = []
    for point in range(len(POINTS)):
        (a, b), (c, d) = ([side[point] for side in pair] for pair in sides)
        if None in (a, b, c, d) or compare(a, b) == 0:
            continue
        ratios.append(divide(subtract(c, d), subtract(a, b)))
    constant = len(ratios) >= 3 and all(compare(ratio, ratios[0]) == 0 for ratio in ratios)
    return constant and (ratios[0] > 0 or (ratios[0] != 0 and one[0] in ("=", "≠")))
