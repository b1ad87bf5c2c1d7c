"""Small edits of the mathematics that a step claims: numbers, operators, relations, variables, terms.

Each makes an equation wrong, turns a relation round or changes a claimed number. Sides with dots are left alone,
and so are those of an inequality, where a change may well be true. A new rule for a side is a row of `_SIDE_RULES`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

from c2faith.dataset.algebra.text import Statement, Token, depths, statements
from c2faith.dataset.negate.claims import Edit, Part, is_claimed

_OPPOSITE = {"+": "-", "-": "+", "−": "+", "*": "+", "·": "+", "⋅": "+", r"\cdot": "+", r"\times": "+", "×": "+"}
_REVERSED = {
    "<": ">", ">": "<", "≤": ">", "≥": "<", "|": "∤", "∤": "|", "≠": "=", r"\ne": "=", r"\neq": "=",
    r"\le": ">", r"\leq": ">", r"\ge": "<", r"\geq": "<", r"\lt": r"\gt", r"\gt": r"\lt",
}  # fmt: skip
_TWINS = {"sin": "cos", "cos": "sin", "min": "max", "max": "min", "gcd": "lcm", "lcm": "gcd"}
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


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a statement, with the positions of the tokens that a rule may touch."""

    tokens: Sequence[Token]
    free: Sequence[int]  # all in an equation, else the plain ones
    plain: Sequence[int]  # those outside subscripts
    ends: bool  # whether it is what the statement comes to


def math_edits(step: str) -> Iterator[Edit]:
    """All edits of the mathematics that a step claims."""
    claimed = [
        statement
        for statement in statements(step)
        if is_claimed(step, statement.start, statement.end)
        and not re.search(r"[A-Za-z_^'\\]$", step[: statement.start])  # only a part, as in sum_(k=0)^n
    ]
    ends = []
    for scope, statement in enumerate(claimed):
        yield from (replace(edit, scope=scope) for edit in _statement_edits(step, statement))
        side, relations = _sides(statement.tokens)[-1]
        if relations == {"="} and not _is_dotted(statement.tokens):
            ends.append(side)
    for one, other in combinations(ends, 2):  # x=6, y=5 becomes x=5, y=6
        yield from _exchange(step, one, other, "variable")


def _is_formula(statement: Statement) -> bool:
    # More than a number, a name or a pair such as 0-1.
    kinds = {token.kind for token in statement.tokens}
    operators = {token.value for token in statement.tokens if token.kind == "op"}
    return bool(kinds & {"rel", "func", "command"} or operators - {"-", "_"}) and len(statement.tokens) > 2


def _sides(tokens: Sequence[Token]) -> list[tuple[Sequence[Token], set[str]]]:
    cuts = [i for i, (depth, token) in enumerate(depths(tokens)) if depth == 0 and token.kind == "rel"]
    return [
        (tokens[left + 1 : right], {tokens[i].value for i in (left, right) if i in cuts})
        for left, right in pairwise([-1, *cuts, len(tokens)])
        if right > left + 1
    ]


def _is_dotted(tokens: Sequence[Token]) -> bool:
    return any(token.kind == "other" for token in tokens)


def _statement_edits(step: str, statement: Statement) -> Iterator[Edit]:
    formula = _is_formula(statement)
    if formula:
        yield from _relations(step, statement.tokens)
    if any(token.value in ("≠", "∤") for token in statement.tokens):
        return  # it denies, and is true of most changes
    for side, relations in _sides(statement.tokens):
        bound = bool(relations) and not relations & {"=", "≈"}
        if _is_dotted(side) or (bound and len(side) > 1):
            continue  # a changed bound may be a weaker one, and true
        start, everywhere = statement.tokens.index(side[0]), range(len(side))
        plain = [i for i in everywhere if not _in_subscript(statement.tokens, start + i)]
        ends = bool(relations) and side[-1] is statement.tokens[-1]
        for rule in _SIDE_RULES if formula and len(side) > 1 else (_numbers,):
            yield from rule(step, Side(side, everywhere if "=" in relations else plain, plain, ends))


def _exchange(step: str, one: Sequence[Token], other: Sequence[Token], kind: str) -> Iterator[Edit]:
    spans = [(tokens[0].start, tokens[-1].end) for tokens in (one, other)]
    texts = [step[slice(*span)] for span in spans]
    if texts[0] != texts[1]:
        yield Edit(((*spans[0], texts[1]), (*spans[1], texts[0])), kind, 0.5)


def _replace(token: Token, text: str) -> Part:
    return (token.start, token.end, text)


def _in_subscript(tokens: Sequence[Token], i: int) -> bool:
    depth = 0
    for j in range(i, 0, -1):
        depth += (tokens[j].kind == "close") - (tokens[j].kind == "open")
        if tokens[j - 1].value == "_" and (j == i or depth < 0):
            return True
    return False


def _is_binary(tokens: Sequence[Token], i: int) -> bool:
    return 0 < i < len(tokens) - 1 and tokens[i - 1].kind in ("num", "name", "close", "bar")


def _relations(step: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    relations = [token for depth, token in depths(tokens) if depth == 0 and token.kind == "rel"]
    turnable = [token for token in relations if step[token.start : token.end] in _REVERSED]
    if len(turnable) == 1:  # to turn one of several round would read oddly
        yield Edit((_replace(turnable[0], _REVERSED[step[turnable[0].start : turnable[0].end]]),), "relation", 3.0)
    if len(relations) == 1 and relations[0].value == "=" and any(token.value == "mod" for token in tokens):
        yield Edit((_replace(relations[0], "≠"),), "relation")


def _numbers(step: str, side: Side) -> Iterator[Edit]:
    places: dict[str, list[Token]] = {}
    weight = 2.0 if side.ends else 1.0
    for token in (side.tokens[i] for i in side.free if side.tokens[i].kind == "num"):
        others = other_numbers(step, token, lone=len(side.tokens) == 1)
        yield from (Edit((_replace(token, text),), "number", weight) for text in others)
        if others and token.value not in "01":
            places.setdefault(token.value, []).append(token)
    for same in places.values():
        if 2 <= len(same) <= 3:
            for text in other_numbers(step, same[0], lone=False):
                yield Edit(tuple(_replace(token, text) for token in same), "number", weight)


def _operators(step: str, side: Side) -> Iterator[Edit]:
    tokens, turned = side.tokens, []
    weight = 2.0 if side.ends else 1.0
    for i in side.free:
        token, spelled = tokens[i], step[tokens[i].start : tokens[i].end]
        if token.kind == "op" and spelled in _OPPOSITE and _is_binary(tokens, i):
            part = _replace(token, _OPPOSITE[spelled])
            yield Edit((part,), "operator", weight)
            turned += [part] if spelled in "+-" and i in side.plain else []
        elif token.kind == "func" and token.value in _TWINS:
            twin = spelled.replace(token.value, _TWINS[token.value])
            yield Edit((_replace(token, twin),), "variable", weight)
    if len(turned) > 1:
        yield Edit(tuple(turned), "operator", 1.0)


def _variables(step: str, side: Side) -> Iterator[Edit]:
    tokens = side.tokens
    places: dict[str, list[int]] = {}
    indices: dict[str, list[int]] = {}
    for i in side.free:
        name = tokens[i].value
        called = [token.value for token in tokens[i + 1 : i + 2] if token.start == tokens[i].end] == ["("]
        if tokens[i].kind != "name" or not re.fullmatch(r"[a-z]", name) or called:
            continue
        if name in "ijkmnr":
            indices.setdefault(name, []).append(i)
        if i in side.plain:
            places.setdefault(name, []).append(i)
    for one, other in combinations(places, 2):
        pairs = [(i, other) for i in places[one]] + [(i, one) for i in places[other]]
        if len(pairs) <= 4 and not any(i and tokens[i - 1].value == "^" for i, _ in pairs):
            yield Edit(tuple(_replace(tokens[i], name) for i, name in pairs), "variable", 0.5)
        yield from (Edit((_replace(tokens[i], name),), "variable", 0.25) for i, name in pairs)
    for at in indices.values():
        if len(at) <= 4 and not any(token.value in ("+", "-", "_") for i in at for token in tokens[i + 1 : i + 2]):
            yield Edit(tuple(_replace(tokens[i], _next_index(step, tokens[i])) for i in at), "variable", 1.0)


def _next_index(step: str, token: Token) -> str:
    before = step[: token.start].rstrip()
    if before.endswith(("{", "(")):
        return f"{token.value}+1"
    braced = before.endswith(("_", "^")) and ("$" in step or "\\" in step)
    return f"{{{token.value}+1}}" if braced else f"({token.value}+1)"


def _terms(step: str, side: Side) -> Iterator[Edit]:
    tokens = side.tokens
    outside = [i for i, (depth, _) in enumerate(depths(tokens)) if depth == 0]
    operands = [i for i in outside if tokens[i].kind == "op" and tokens[i].value != "_"]
    joints = [i for i in operands if tokens[i].value in ("+", "-", "*") and _is_binary(tokens, i)]
    for i in joints:
        after = next((j for j in operands if j > i and tokens[j].value in ("+", "-", "mod", "*", "/")), len(tokens))
        yield Edit(((tokens[i - 1].end, tokens[after - 1].end, ""),), "term", 1.0)
    if len(operands) == 1 and tokens[operands[0]].value in "-/" and _is_binary(tokens, operands[0]):
        left, right = tokens[: operands[0]], tokens[operands[0] + 1 :]
        if not any(len(part) == 1 and part[0].value == "1" for part in (left, right)):
            yield from _exchange(step, left, right, "term")
    end = tokens[-1].end
    if not side.ends or re.match(r"[-\w_]", step[end:]) or any(tokens[i].value == "mod" for i in outside):
        return
    space = " " if re.search(r"\s[+=-]\s", step) else ""
    if tokens[-1].kind != "num":
        yield from (Edit(((end, end, f"{space}{sign}{space}1"),), "term", 0.5) for sign in "+-")
    signs = [i for i in joints if tokens[i].value in ("+", "-")]
    for token in tokens[signs[-1] + 1 :] if signs else ():
        for text in other_numbers(step, token, lone=False) if token.kind == "num" else ():
            copy = step[tokens[signs[-1]].end : token.start] + text + step[token.end : end]
            yield Edit(((end, end, f"{space}{step[tokens[signs[-1]].start]}{copy}"),), "term", 1.0)


def _arguments(step: str, side: Side) -> Iterator[Edit]:
    tokens = side.tokens
    deep = [depth for depth, _ in depths(tokens)]
    for end, token in enumerate(tokens):
        if token.kind == "close" and token.value == "(":
            start = max(i for i in range(end) if tokens[i].kind == "open" and deep[i] == deep[end])
            commas = [i for i in range(start, end) if tokens[i].kind == "break" and deep[i] == deep[end] + 1]
            if len(commas) == 1 and start + 1 < commas[0] < end - 1:
                yield from _exchange(step, tokens[start + 1 : commas[0]], tokens[commas[0] + 1 : end], "variable")


_SIDE_RULES = (
    _numbers,  # change one, also at all its places if it is written two or three times
    _operators,  # turn one into another, all signs round, or a function into its twin
    _variables,  # put one for another, exchange two, or move an index by one at all its places
    _terms,  # drop one, turn a difference or quotient round, add 1 or a variant of the last term
    _arguments,  # exchange the two of a function or point: C(n, k) becomes C(k, n)
)


def other_numbers(step: str, token: Token, *, lone: bool) -> list[str]:
    """Nearby values that can stand in a number's place, but for those that the step has already.

    Labels, ordinals, subscripts and members of lists with dots have none. A bound ("at least 3") gets stronger. A
    number that is a whole side of its statement (`lone`) may become 0, a factor or exponent neither 0 nor 1.

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
