"""Small edits of the mathematics that a step claims: numbers, operators, relations, variables, terms.

Each makes an equation wrong, turns a relation round or changes a claimed number. Sides with dots are left alone,
and so are the sides of an inequality, where a change may well be true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from c2faith.dataset.algebra import Statement, Token, statements
from c2faith.dataset.algebra.text import depths
from c2faith.dataset.negate.claims import Edit, Part, is_claimed
from c2faith.dataset.negate.numbers import other_numbers

_OPPOSITE = {"+": "-", "-": "+", "−": "+", "*": "+", "·": "+", "⋅": "+", r"\cdot": "+", r"\times": "+", "×": "+"}
_REVERSED = {
    "<": ">", ">": "<", "≤": ">", "≥": "<", "|": "∤", "∤": "|", "≠": "=", r"\ne": "=", r"\neq": "=",
    r"\le": ">", r"\leq": ">", r"\ge": "<", r"\geq": "<", r"\lt": r"\gt", r"\gt": r"\lt",
}  # fmt: skip
_TWINS = {"sin": "cos", "cos": "sin", "min": "max", "max": "min", "gcd": "lcm", "lcm": "gcd"}


def math_edits(step: str) -> list[Edit]:
    """All edits of the mathematics that a step claims."""
    claimed = [s for s in statements(step) if is_claimed(step, s.start, s.end) and not _is_fragment(step, s)]
    found = [
        Edit(edit.parts, edit.kind, edit.weight, scope)
        for scope, statement in enumerate(claimed)
        for edit in _statement_edits(step, statement)
    ]
    return found + list(_exchanged_ends(step, claimed))


def _is_fragment(step: str, statement: Statement) -> bool:
    """Whether the text goes on without a break, as in ``sum_(k=0)^n``, so that the statement is only a part."""
    return re.search(r"[A-Za-z_^'\\]$", step[: statement.start]) is not None


def _is_formula(statement: Statement) -> bool:
    """Whether it is more than a number, a name or a pair such as 0-1."""
    kinds = {token.kind for token in statement.tokens}
    operators = {token.value for token in statement.tokens if token.kind == "op"}
    return bool(kinds & {"rel", "func", "command"} or operators - {"-", "_"}) and len(statement.tokens) > 2


def _sides(tokens: Sequence[Token]) -> list[tuple[int, int, set[str]]]:
    """First and last token of each side, and the relations beside it."""
    cuts = [i for i, (depth, token) in enumerate(depths(tokens)) if depth == 0 and token.kind == "rel"]
    return [
        (left + 1, right - 1, {tokens[i].value for i in (left, right) if i in cuts})
        for left, right in pairwise([-1, *cuts, len(tokens)])
        if right > left + 1
    ]


def _is_dotted(tokens: Sequence[Token]) -> bool:
    return any(token.kind == "other" for token in tokens)


def _exchanged_ends(step: str, claimed: Sequence[Statement]) -> Iterator[Edit]:
    """Exchange what two equations of the step come to: x=6, y=5 becomes x=5, y=6."""
    ends = []
    for statement in claimed:
        first, last, relations = _sides(statement.tokens)[-1]
        if relations == {"="} and not _is_dotted(statement.tokens):
            ends.append((statement.tokens[first].start, statement.tokens[last].end))
    for one, other in combinations(ends, 2):
        yield from _exchange(step, one, other, "variable")


def _exchange(step: str, one: tuple[int, int], other: tuple[int, int], kind: str) -> Iterator[Edit]:
    texts = step[slice(*one)], step[slice(*other)]
    if texts[0] != texts[1]:
        yield Edit(((*one, texts[1]), (*other, texts[0])), kind, 0.5)


def _statement_edits(step: str, statement: Statement) -> Iterator[Edit]:
    tokens = statement.tokens
    formula = _is_formula(statement)
    if formula:
        yield from _relations(step, tokens)
    if any(token.value in ("≠", "∤") for token in tokens):
        return  # it denies, and is true of most changes
    for first, last, relations in _sides(tokens):
        bound = bool(relations) and not relations & {"=", "≈"}
        if _is_dotted(tokens[first : last + 1]) or (bound and last > first):
            continue  # a changed bound may be a weaker one, and true
        ends = last == len(tokens) - 1 and bool(relations)
        free = [i for i in range(first, last + 1) if "=" in relations or not _in_subscript(tokens, i)]
        yield from _numbers(step, tokens, free, lone=first == last, weight=2.0 if ends else 1.0)
        if formula and last > first:
            yield from _operators(step, tokens, free, weight=2.0 if ends else 1.0)
            yield from _variables(step, tokens, free)
            outside = [i for i, (depth, _) in enumerate(depths(tokens)) if depth == 0 and first <= i <= last]
            yield from _terms(step, tokens, outside, ends=ends)
            yield from _arguments(step, tokens[first : last + 1])


def _replace(token: Token, text: str) -> Part:
    return (token.start, token.end, text)


def _in_subscript(tokens: Sequence[Token], i: int) -> bool:
    """Whether a token belongs to a subscript: directly after ``_``, or in a bracket that opens there."""
    depth = 0
    for j in range(i, 0, -1):
        depth += (tokens[j].kind == "close") - (tokens[j].kind == "open")
        if tokens[j - 1].value == "_" and (j == i or depth < 0):
            return True
    return False


def _is_binary(tokens: Sequence[Token], i: int) -> bool:
    return 0 < i < len(tokens) - 1 and tokens[i - 1].kind in ("num", "name", "close", "bar")


def _relations(step: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """Turn an inequality or a divisibility round; none of several, which would read oddly."""
    relations = [token for depth, token in depths(tokens) if depth == 0 and token.kind == "rel"]
    turnable = [token for token in relations if step[token.start : token.end] in _REVERSED]
    if len(turnable) == 1:
        yield Edit((_replace(turnable[0], _REVERSED[step[turnable[0].start : turnable[0].end]]),), "relation", 3.0)
    if len(relations) == 1 and relations[0].value == "=" and any(token.value == "mod" for token in tokens):
        yield Edit((_replace(relations[0], "≠"),), "relation")


def _numbers(
    step: str, tokens: Sequence[Token], free: Sequence[int], *, lone: bool, weight: float
) -> Iterator[Edit]:
    """Change one number, or one that is written two or three times on a side, at all its places."""
    places: dict[str, list[int]] = {}
    for i in free:
        others = other_numbers(step, tokens[i], lone=lone) if tokens[i].kind == "num" else []
        yield from (Edit((_replace(tokens[i], text),), "number", weight) for text in others)
        if others and tokens[i].value not in "01":
            places.setdefault(tokens[i].value, []).append(i)
    for same in places.values():
        if 2 <= len(same) <= 3:
            for text in other_numbers(step, tokens[same[0]], lone=False):
                yield Edit(tuple(_replace(tokens[i], text) for i in same), "number", weight)


def _operators(step: str, tokens: Sequence[Token], free: Sequence[int], *, weight: float) -> Iterator[Edit]:
    """Turn one operator into another, all signs of a side round, or one function into its twin."""
    turned: list[Part] = []
    for i in free:
        spelled = step[tokens[i].start : tokens[i].end]
        if tokens[i].kind == "op" and spelled in _OPPOSITE and _is_binary(tokens, i):
            part = _replace(tokens[i], _OPPOSITE[spelled])
            yield Edit((part,), "operator", weight)
            turned += [part] if spelled in "+-" and not _in_subscript(tokens, i) else []
        elif tokens[i].kind == "func" and tokens[i].value in _TWINS:
            twin = spelled.replace(tokens[i].value, _TWINS[tokens[i].value])
            yield Edit((_replace(tokens[i], twin),), "variable", weight)
    if len(turned) > 1:
        yield Edit(tuple(turned), "operator", 1.0)


def _variables(step: str, tokens: Sequence[Token], free: Sequence[int]) -> Iterator[Edit]:
    """Put one variable for another, exchange two, or move an index by one at all its places on a side."""
    places: dict[str, list[int]] = {}
    indices: dict[str, list[int]] = {}
    for i in free:
        if tokens[i].kind != "name" or not re.fullmatch(r"[a-z]", tokens[i].value):
            continue
        called = i + 1 < len(tokens) and tokens[i + 1].value == "(" and tokens[i + 1].start == tokens[i].end
        if tokens[i].value in "ijkmnr" and not called:
            indices.setdefault(tokens[i].value, []).append(i)
        if not called and not _in_subscript(tokens, i):
            places.setdefault(tokens[i].value, []).append(i)
    for one, other in combinations(places, 2):
        pairs = [(i, other) for i in places[one]] + [(i, one) for i in places[other]]
        if len(pairs) <= 4 and not any(tokens[i - 1].value == "^" for i, _ in pairs):
            yield Edit(tuple(_replace(tokens[i], name) for i, name in pairs), "variable", 0.5)
        yield from (Edit((_replace(tokens[i], name),), "variable", 0.25) for i, name in pairs)
    for at in indices.values():
        if len(at) <= 4 and not any(tokens[i + 1].value in ("+", "-", "_") for i in at if i + 1 < len(tokens)):
            yield Edit(tuple(_replace(tokens[i], _next_index(step, tokens[i])) for i in at), "variable", 1.0)


def _next_index(step: str, token: Token) -> str:
    """The index plus one, in the brackets that its place and the step's spelling ask for."""
    before = step[: token.start].rstrip()
    if before.endswith(("{", "(")):
        return f"{token.value}+1"
    braced = before.endswith(("_", "^")) and ("$" in step or "\\" in step)
    return f"{{{token.value}+1}}" if braced else f"({token.value}+1)"


def _terms(step: str, tokens: Sequence[Token], outside: Sequence[int], *, ends: bool) -> Iterator[Edit]:
    """Drop a term or factor, turn a difference or quotient round, add 1 or a variant of the last term."""
    first, last = outside[0], outside[-1]
    operands = [i for i in outside if tokens[i].kind == "op" and tokens[i].value != "_"]
    joints = [i for i in operands if tokens[i].value in ("+", "-", "*") and _is_binary(tokens, i)]
    for i in joints:
        end = next((j for j in operands if j > i and tokens[j].value in ("+", "-", "mod", "*", "/")), last + 1)
        yield Edit(((tokens[i - 1].end, tokens[end - 1].end, ""),), "term", 1.0)
    if len(operands) == 1 and tokens[operands[0]].value in "-/" and _is_binary(tokens, operands[0]):
        left, right = tokens[first : operands[0]], tokens[operands[0] + 1 : last + 1]
        spans = [(part[0].start, part[-1].end) for part in (left, right)]
        if not any(step[slice(*span)] == "1" for span in spans):
            yield from _exchange(step, *spans, "term")
    if not ends or re.match(r"[-\w_]", step[tokens[last].end :]) or any(tokens[i].value == "mod" for i in outside):
        return
    end, space = tokens[last].end, " " if re.search(r"\s[+=-]\s", step) else ""
    if tokens[last].kind != "num":
        yield from (Edit(((end, end, f"{space}{sign}{space}1"),), "term", 0.5) for sign in "+-")
    signs = [i for i in joints if tokens[i].value in ("+", "-")]
    for i in range(signs[-1] + 1, last + 1) if signs else ():
        for text in other_numbers(step, tokens[i], lone=False) if tokens[i].kind == "num" else ():
            copy = step[tokens[signs[-1]].end : tokens[i].start] + text + step[tokens[i].end : end]
            yield Edit(((end, end, f"{space}{step[tokens[signs[-1]].start]}{copy}"),), "term", 1.0)


def _arguments(step: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """Exchange the two arguments of a function or coordinates of a point: C(n, k) becomes C(k, n)."""
    opened: list[int] = []
    for i, token in enumerate(tokens):
        if token.kind == "open":
            opened.append(i)
        elif token.kind == "close" and opened:
            start = opened.pop()
            commas = [
                start + 1 + j
                for j, (depth, inner) in enumerate(depths(tokens[start + 1 : i]))
                if depth == 0 and inner.kind == "break"
            ]
            if token.value == "(" and len(commas) == 1 and start + 1 < commas[0] < i - 1:
                one, other = tokens[start + 1 : commas[0]], tokens[commas[0] + 1 : i]
                yield from _exchange(step, *((part[0].start, part[-1].end) for part in (one, other)), "variable")
