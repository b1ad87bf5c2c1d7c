"""Small edits of the mathematics in a step: numbers, operators, relations, variables, terms.

An edit is offered only where it makes a claim wrong: not in a label, an ordinal or a list with dots; not in what is
merely supposed ("If x = 2, …"); not in what is denied ("we cannot have x = 2" stays true for most other numbers);
and a bound is only ever made stronger.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from c2faith.algebra import Statement, Token, statements
from c2faith.algebra.text import depths


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace each ``step[start:end]`` of `parts` by its text, all together.

    `kind` is number, operator, relation, variable, term, opposite, operation or denial. `scope` is the index of the
    statement, or -1 for an edit of words.
    """

    parts: tuple[tuple[int, int, str], ...]
    kind: str
    weight: float = 1.0
    scope: int = -1

    @property
    def size(self) -> int:
        """Characters that go or come."""
        return sum(end - start + len(text) for start, end, text in self.parts)


def apply(step: str, edits: Sequence[Edit]) -> str:
    """The step with all edits made; they must not overlap."""
    for start, end, text in sorted((part for edit in edits for part in edit.parts), reverse=True):
        step = step[:start] + text + step[end:]
    return step


_SUPPOSING = re.compile(
    r"\b(?:if|when|whenever|unless|for|let|letting|suppose|assume|assuming|consider|considering|define|denote|"
    r"where|given|set|setting|plugging|substituting|choose|using|starting|recall|whether|between|from|with)\b",
    re.IGNORECASE,
)
_CLAIMING = re.compile(
    r"\b(?:then|have|has|get|gives?|is|are|so|thus|hence|therefore|means?|impl(?:y|ies)|must|obtain|becomes?|"
    r"equals?|leads?|need|know|see|find|follows?|conclude|requires?|simplif(?:y|ies)|reduces?|since|because|would)\b",
    re.IGNORECASE,
)
_DENYING = re.compile(
    r"\b(?:cannot|can't|isn't|not|no|never|impossible|contradict\w*|neither|nor|none|without|otherwise)\b|∤|≠",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?:step|case|equations?|parts?|lemma|theorem|section|figure|line|row|column|base|grade|year|digits?|"
    r"inequalit(?:y|ies))\s*\(?$|(?<![A-Za-z])an?\s+$|[A-Za-z_#]$|(?<![A-Za-z\d}^_])\{$|between\s|(?:\.\.\.?|…|\\l?c?dots)\s*[,+*]?\s*$",
    re.IGNORECASE,
)
_TAIL = re.compile(r"-?(?:th|st|nd|rd)\b|\s*(?:,\s*)?(?:\.\.|…|\\l?c?dots)|-?[A-Za-z]{2}|s\b|[\]}]?_")
_UPWARD = re.compile(r"(?:at least|(?:greater|more|larger|bigger) than|[>≥]|\\geq?)\s*\$*\s*$")
_DOWNWARD = re.compile(r"(?:at most|(?:less|fewer|smaller) than|[<≤]|\\leq?)\s*\$*\s*$")
_OPPOSITE = {"+": "-", "-": "+", "−": "+", "*": "+", "·": "+", "⋅": "+", r"\cdot": "+", r"\times": "+", "×": "+"}
_REVERSED = {
    "<": ">", ">": "<", "≤": ">", "≥": "<", "|": "∤", "∤": "|",
    r"\le": ">", r"\leq": ">", r"\ge": "<", r"\geq": "<", r"\lt": r"\gt", r"\gt": r"\lt",
}  # fmt: skip


def is_denied(text: str) -> bool:
    """Whether a clause or sentence denies something."""
    return _DENYING.search(text) is not None


def is_claimed(step: str, start: int, end: int) -> bool:
    """Whether ``step[start:end]`` stands in a clause that asserts: neither supposed nor denied."""
    sentence = re.split(r"[.;:?!](?=\s)", step[:start])[-1]
    supposing = [match.start() for match in _SUPPOSING.finditer(sentence)]
    claiming = [match.start() for match in _CLAIMING.finditer(sentence)]
    if supposing and max(claiming, default=-1) < supposing[-1]:
        return False
    before, after = re.split(r"[.,;:?!]\s", step[:start])[-1], re.split(r"[.,;:?!](?:\s|$)", step[end:])[0]
    return not is_denied(f"{before} {after}")


def math_edits(step: str) -> list[Edit]:
    """All edits of the mathematics that a step claims."""
    claimed = [s for s in statements(step) if is_claimed(step, s.start, s.end)]
    found = [
        Edit(edit.parts, edit.kind, edit.weight, scope)
        for scope, statement in enumerate(claimed)
        for edit in _statement_edits(step, statement)
    ]
    return found + list(_exchanges(step, claimed))


def _exchanges(step: str, claimed: Sequence[Statement]) -> Iterator[Edit]:
    """Exchange what two equations of the step come to: x=6, y=5 becomes x=5, y=6."""
    ends = []
    for statement in claimed:
        first, last, relations = _sides(statement.tokens)[-1]
        if relations == {"="} and not any(token.kind == "other" for token in statement.tokens):
            ends.append((statement.tokens[first].start, statement.tokens[last].end))
    for (a, b), (c, d) in combinations(ends, 2):
        if step[a:b] != step[c:d]:
            yield Edit(((a, b, step[c:d]), (c, d, step[a:b])), "variable", 0.5)


def _statement_edits(step: str, statement: Statement) -> Iterator[Edit]:
    tokens = statement.tokens
    formula = _is_formula(statement)
    if formula:
        yield from _relations(step, tokens)
    for first, last, relations in _sides(tokens):
        bound = bool(relations) and not relations & {"=", "≈"}
        dotted = any(token.kind == "other" for token in tokens[first : last + 1])
        if dotted or (bound and last > first):
            continue  # a changed bound may be a weaker one, and true
        weight = 2.0 if last == len(tokens) - 1 and relations else 1.0
        yield from _numbers(step, tokens, first, last, weight)
        if formula and last > first:
            yield from _operators(step, tokens, first, last, weight)
            yield from _variables(tokens, first, last)
            yield from _terms(step, tokens, first, last)


def _edit(token: Token, text: str, kind: str, weight: float = 1.0) -> Edit:
    return Edit(((token.start, token.end, text),), kind, weight)


def _is_formula(statement: Statement) -> bool:
    """Whether it is more than a number, a name or a pair such as 0-1."""
    kinds = {token.kind for token in statement.tokens}
    operators = {token.value for token in statement.tokens if token.kind == "op"}
    return bool(kinds & {"rel", "func", "command"} or operators - {"-", "_"}) and len(statement.tokens) > 2


def _sides(tokens: Sequence[Token]) -> list[tuple[int, int, set[str]]]:
    """First and last token of each side, and the relations beside it."""
    cuts = [i for i, (depth, token) in enumerate(depths(tokens)) if depth == 0 and token.kind == "rel"]
    edges = [-1, *cuts, len(tokens)]
    return [
        (left + 1, right - 1, {tokens[i].value for i in (left, right) if i in cuts})
        for left, right in pairwise(edges)
        if right > left + 1
    ]


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


def _numbers(step: str, tokens: Sequence[Token], first: int, last: int, weight: float) -> Iterator[Edit]:
    """Change one number, or one that is written two or three times on a side, at all its places."""
    places: dict[str, list[int]] = {}
    for i in range(first, last + 1):
        if tokens[i].kind == "num":
            others = _other_numbers(step, tokens[i], lone=first == last)
            yield from (_edit(tokens[i], text, "number", weight) for text in others)
            if others and tokens[i].value not in "01":
                places.setdefault(tokens[i].value, []).append(i)
    for same in places.values():
        if 2 <= len(same) <= 3:
            for text in _other_numbers(step, tokens[same[0]], lone=False):
                yield Edit(tuple((tokens[i].start, tokens[i].end, text) for i in same), "number", weight)


def _operators(step: str, tokens: Sequence[Token], first: int, last: int, weight: float) -> Iterator[Edit]:
    """Turn one operator into another, or all signs of a side round."""
    turned = []
    for i in range(first, last + 1):
        spelled = step[tokens[i].start : tokens[i].end]
        if tokens[i].kind == "op" and spelled in _OPPOSITE and _is_binary(tokens, i):
            edit = _edit(tokens[i], _OPPOSITE[spelled], "operator", weight)
            yield edit
            turned += edit.parts if spelled in "+-" and not _in_subscript(tokens, i) else ()
    if len(turned) > 1:
        yield Edit(tuple(turned), "operator", 1.0)


def _variables(tokens: Sequence[Token], first: int, last: int) -> Iterator[Edit]:
    """Put one variable for another, or exchange two, on one side."""
    places: dict[str, list[int]] = {}
    for i in range(first, last + 1):
        if tokens[i].kind == "name" and len(tokens[i].value) == 1 and tokens[i].value.islower():
            called = i + 1 < len(tokens) and tokens[i + 1].value == "(" and tokens[i + 1].start == tokens[i].end
            if not called and not _in_subscript(tokens, i):
                places.setdefault(tokens[i].value, []).append(i)
    for one, other in combinations(places, 2):
        pairs = [(i, other) for i in places[one]] + [(i, one) for i in places[other]]
        if len(pairs) <= 4:
            yield Edit(tuple((tokens[i].start, tokens[i].end, name) for i, name in pairs), "variable", 0.5)
        yield from (_edit(tokens[i], name, "variable", 0.25) for i, name in pairs)


def _other_numbers(step: str, token: Token, *, lone: bool) -> list[str]:
    """Nearby values that can stand in a number's place without looking odd or making a bound weaker."""
    text, before, after = step[token.start : token.end], step[: token.start], step[token.end :]
    if not re.fullmatch(r"(?:0|[1-9]\d*)(?:\.\d+)?", text) or _LABEL.search(before) or _TAIL.match(after):
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


def _relations(step: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """Turn an inequality or a divisibility round; none of several, which would read oddly."""
    relations = [token for depth, token in depths(tokens) if depth == 0 and token.kind == "rel"]
    turnable = [token for token in relations if step[token.start : token.end] in _REVERSED]
    if len(turnable) == 1:
        yield _edit(turnable[0], _REVERSED[step[turnable[0].start : turnable[0].end]], "relation", 3.0)
    if len(relations) == 1 and relations[0].value == "=" and any(token.value == "mod" for token in tokens):
        yield _edit(relations[0], "≠", "relation")


def _terms(step: str, tokens: Sequence[Token], first: int, last: int) -> Iterator[Edit]:
    """Drop a term or factor, turn a difference or quotient round, add 1 or a variant of the last term."""
    outside = [i for i, (depth, _) in enumerate(depths(tokens)) if depth == 0 and first <= i <= last]
    joints = [i for i in outside if tokens[i].value in ("+", "-", "*") and _is_binary(tokens, i)]
    for i in joints:
        after = [j for j in outside if j > i and tokens[j].value in ("+", "-", "mod", "*", "/")]
        end = after[0] - 1 if after else last
        yield Edit(((tokens[i - 1].end, tokens[end].end, ""),), "term", 1.0)
    operands = [i for i in outside if tokens[i].kind == "op" and tokens[i].value != "_"]
    if len(operands) == 1 and tokens[operands[0]].value in "-/" and _is_binary(tokens, operands[0]):
        i = operands[0]
        left, right = (tokens[first].start, tokens[i - 1].end), (tokens[i + 1].start, tokens[last].end)
        if "1" not in (step[slice(*left)], step[slice(*right)]):
            yield Edit(((*left, step[slice(*right)]), (*right, step[slice(*left)])), "term", 0.5)
    if last < len(tokens) - 1 or any(tokens[i].value == "mod" for i in outside):
        return
    end = tokens[last].end
    space = " " if re.search(r"\s[+=-]\s", step) else ""
    for sign in "+-":
        yield Edit(((end, end, f"{space}{sign}{space}1"),), "term", 0.5)
    signs = [i for i in joints if tokens[i].value in ("+", "-")]
    if signs:
        for i in range(signs[-1] + 1, last + 1):
            for text in _other_numbers(step, tokens[i], lone=False) if tokens[i].kind == "num" else ():
                copy = step[tokens[signs[-1]].end : tokens[i].start] + text + step[tokens[i].end : end]
                yield Edit(((end, end, f"{space}{step[tokens[signs[-1]].start]}{copy}"),), "term", 1.0)
