"""Mathematics in step texts, and what can be decided about it: truth, and whether two statements say the same.

Nothing is simplified, since that can take forever: expressions that agree at every seeded sample point are taken as
equal, which for polynomials is wrong with a vanishing probability (Schwartz-Zippel lemma).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from c2faith.dataset.algebra.parse import Link, Reading, Tree, names, readings
from c2faith.dataset.algebra.text import Statement
from c2faith.dataset.algebra.text import statements as statements
from c2faith.dataset.algebra.value import POINTS, Number, Undefined, compare, divide, subtract, value

Truth = Literal["true", "false", "open"]
_HOLDING = {"=": (0,), "≠": (-1, 1), "<": (-1,), ">": (1,), "≤": (-1, 0), "≥": (0, 1)}
_FLIPPED = {">": "<", "≥": "≤"}


def truth(statement: Statement) -> Truth:
    """The truth of a whole statement: ``true`` in some reading, ``false`` in every one, else ``open``.

    >>> [truth(s) for s in statements("2+2=4, 5!=24, (a+b)^2=a^2+2ab+b^2, x=3, 7 | 91, 3<2")]
    ['true', 'false', 'true', 'open', 'true', 'false']
    """
    verdicts = set()
    for reading in readings(statement):
        truths = {link_truth(reading, link) for link in reading.links}
        verdicts.add("false" if "false" in truths else "true" if truths == {"true"} else "open")
    return "true" if "true" in verdicts else "false" if verdicts == {"false"} else "open"


def link_truth(reading: Reading, link: Link) -> Truth:
    """``true`` or ``false`` for a link without variables, ``true`` for an identity, else ``open``."""
    if link[0] == "≈":
        return "open"  # it does not say how near
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


def _outcomes(reading: Reading, link: Link, points: Sequence[int] = POINTS) -> list[bool]:
    found = _where_defined(lambda point: _holds(link, reading.modulus, point), points)
    return [outcome for outcome in found if outcome is not None]


def _where_defined(function: Callable[[int], Any], points: Sequence[int] = POINTS) -> list[Any]:
    found = []
    for point in points:
        try:
            found.append(function(point))
        except Undefined:
            found.append(None)
    return found


def _holds(link: Link, modulus: Tree | None, point: int) -> bool:
    relation, left, right = link
    if relation in ("|", "∤"):
        return (value(("mod", right, ("abs", left)), point) == 0) == (relation == "|")
    if relation == "≡":
        return value(("mod", ("-", left, right), modulus), point) == 0
    return compare(value(left, point), value(right, point)) in _HOLDING[relation]


def equivalent(one: Statement, other: Statement) -> bool:
    """Whether two statements say the same in some reading: equal expressions, or the same relations.

    Relations may be turned round (a < b, b > a), scaled (x = y, 2x = 2y) or, in a chain of equalities, reordered.

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
    links, others = (list(map(_oriented, reading.links)) for reading in (one, other))
    return len(links) > 0 and any(all(map(_same_link, links, order)) for order in (others, others[::-1]))


def _oriented(link: Link) -> Link:
    relation, left, right = link
    return (_FLIPPED[relation], right, left) if relation in _FLIPPED else link


def _values(tree: Tree) -> list[Number | None]:
    return _where_defined(lambda point: value(tree, point))


def _agree(one: list[Number | None], other: list[Number | None]) -> bool:
    both = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    return len(both) >= 3 and all(compare(a, b) == 0 for a, b in both)


def _same_link(one: Link, other: Link) -> bool:
    relation = one[0]
    if relation != other[0]:
        return False
    (a, b), (c, d) = ([_values(tree) for tree in link[1:]] for link in (one, other))
    symmetric = relation in ("=", "≠")
    if (_agree(a, c) and _agree(b, d)) or (symmetric and _agree(a, d) and _agree(b, c)):
        return True
    if not (symmetric or relation in ("<", "≤")) or not (names(one[1]) | names(one[2])):
        return False
    at_points = [values for values in zip(a, b, c, d, strict=True) if None not in values]
    ratios = [divide(subtract(c, d), subtract(a, b)) for a, b, c, d in at_points if compare(a, b) != 0]
    constant = len(ratios) >= 3 and all(compare(ratio, ratios[0]) == 0 for ratio in ratios)
    return constant and (ratios[0] > 0 or (symmetric and ratios[0] != 0))
