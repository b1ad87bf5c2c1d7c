"""Which numbers of a step may be changed, and into what."""

from __future__ import annotations

import re

from c2faith.dataset.algebra import Token

_HELD_BEFORE = re.compile(
    r"(?:step|case|equations?|parts?|lemma|theorem|section|figure|line|row|column|base|grade|year|digits?|"
    r"inequalit(?:y|ies))\s*\(?$"  # labels
    r"|(?<![A-Za-z])an?\s+$"  # "an 8-digit" would need another article
    r"|[A-Za-z_#]$|(?<![A-Za-z\d}^_])\{$"  # x1, x_1, {1, 2}
    r"|between\s+$|(?:\.\.\.?|…|\\l?c?dots)\s*[,+*]?\s*$",
    re.IGNORECASE,
)
_HELD_AFTER = re.compile(r"-?(?:th|st|nd|rd)\b|\s*(?:,\s*)?(?:\.\.|…|\\l?c?dots)|-?[A-Za-z]{2}|s\b|[\]}]?_")
_UPWARD = re.compile(r"(?:at least|(?:greater|more|larger|bigger) than|[>≥]|\\geq?)\s*\$*\s*$")
_DOWNWARD = re.compile(r"(?:at most|(?:less|fewer|smaller) than|[<≤]|\\leq?)\s*\$*\s*$")


def other_numbers(step: str, token: Token, *, lone: bool) -> list[str]:
    """Nearby values that can stand in a number's place.

    None for labels, ordinals, subscripts and members of lists with dots. A bound ("at least 3", "≤ 5") only gets
    stronger. A number that is a whole side of its statement (`lone`) may become 0; one that multiplies or is an
    exponent becomes neither 0 nor 1. Values that the step has already are left out.

    >>> step = "Thus, at least 5 of the 12 terms of x_1 are 0."
    >>> [other_numbers(step, Token("num", step[i:j], i, j), lone=True) for i, j in ((15, 16), (24, 26), (38, 39))]
    [['6', '7'], ['10', '11', '13', '14', '15'], []]
    """
    text, before, after = step[token.start : token.end], step[: token.start], step[token.end :]
    plain = re.fullmatch(r"(?:0|[1-9]\d*)(?:\.\d+)?", text)
    if not plain or _HELD_BEFORE.search(before) or _HELD_AFTER.match(after):
        return []
    if "." in text:
        whole, decimals = text.split(".")
        return [f"{whole}.{decimals[:-1]}{(int(decimals[-1]) + shift) % 10 or 3}" for shift in (1, 2, 8)]
    number = int(text)
    near = {number + 1, number - 1, number + 2, number - 2}
    if number >= 20:
        near |= {number + 10, number - 10, int(text[:-2] + text[-1] + text[-2])}
    elif number >= 10:
        near.add(number + 3)
    if _UPWARD.search(before):
        near = {other for other in near if other > number}
    elif _DOWNWARD.search(before):
        near = {other for other in near if other < number}
    factor = re.match(r"\s?[A-Za-z(\\*]", after) or before.endswith(("^", "^{", "^(", "*"))
    least = 0 if lone and number else 2 if factor and not lone else 1
    taken = set(re.findall(r"\d+", step))
    return [str(other) for other in sorted(near) if other >= least and str(other) not in taken]
