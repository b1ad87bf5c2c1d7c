"""Edits of a step's words: opposites, operations spelled out, and denials of what it claims."""

from __future__ import annotations

import re
from collections.abc import Iterator

from c2faith.dataset.algebra.text import statements
from c2faith.dataset.negate.claims import Edit, is_claimed, is_denied

_OPPOSITES = [
    ("even", "odd"), ("positive", "negative"), ("increasing", "decreasing"), ("maximum", "minimum"),
    ("maximal", "minimal"), ("largest", "smallest"), ("larger", "smaller"), ("at most", "at least"),
    ("greater than", "less than"), ("more than", "less than"), ("rational", "irrational"), ("prime", "composite"),
    ("finite", "infinite"), ("sufficient", "insufficient"), ("convex", "concave"), ("above", "below"),
    ("converges", "diverges"), ("true", "false"), ("always", "never"), ("inside", "outside"),
    ("are the same", "are different"), ("is the same as", "is different from"), ("have the same", "have different"),
    ("only one", "more than one"), ("exactly one", "more than one"), ("the first", "the last"), ("two", "three"),
    ("three", "four"), ("four", "five"), ("bounded", "unbounded"), ("fixed", "arbitrary"), ("row", "column"),
    ("rows", "columns"), ("vertical", "horizontal"), ("numerator", "denominator"), ("common", "distinct"),
    ("with", "without"), ("including", "excluding"), ("non-negative", "negative"), ("non-positive", "positive"),
]  # fmt: skip
_OPERATIONS = [
    ("adding these", "subtracting these"), ("adding the", "subtracting the"), ("plus", "minus"),
    ("multiply", "divide"), ("multiplying", "dividing"), ("multiplied", "divided"),
    ("sum of the", "product of the"), ("increase", "decrease"), ("squaring", "doubling"),
]  # fmt: skip
_DENIALS = [
    (r"we must have", ["we cannot have", "we need not have"]),
    (r"we have", ["we do not have", "we cannot have", "we can never have", "it is impossible to have"]),
    (r"must be", ["cannot be", "need not be", "can never be"]),
    (r"must (?!be\b|have\b|not\b)", ["need not "]),
    (r"(can|could) (?!not\b|only\b|never\b)", ["cannot "]),
    (r"cannot", ["can", "can always"]),
    (r"(is|are|was|were) not", [r"\1", r"\1 always"]),
    (r"(?<!there )(is|are) (?!not\b|no\b|never\b|to\b|also\b|then\b|impossible\b)", [r"\1 not ", r"\1 never "]),
    (r"divides", ["does not divide"]),
    (r"satisfies", ["does not satisfy"]),
    (r"(represent|contain|exceed|equal|appear|exist|require|remain|hold|correspond)s", [r"does not \1"]),
    (r"contradicts(?: with)?", ["is consistent with", "agrees with"]),
    (r"(?:is|gives us) a contradiction", ["is consistent", "is no contradiction"]),
    (r"is impossible", ["is possible"]),
    (r"(has|is) no (?=(?:(?:real|positive|such|common) )*(?:solution|root|number|value)\b)", [r"\1 a "]),
    (r"(has|is) no (?=(?:integer|other) (?:solution|root|number|value)\b)", [r"\1 an "]),
    (r"(have|are) no (?=\w)", [r"\1 "]),
    (r"(means|implies) that", [r"does not mean that", "does not imply that"]),
]  # fmt: skip
_LEADS = ["it is not true that ", "it is not the case that ", "it cannot be that ", "it is impossible that "]
_ENDINGS = [
    ", which is impossible", ", which is a contradiction", ", which cannot hold", ", contrary to what was assumed",
]  # fmt: skip
_CLAUSE = re.compile(
    r"(?P<lead>(?:(?:Thus|So|Therefore|Hence|Then|Furthermore|Moreover|In addition|This means that|Now|Also|Again|"
    r"However|Similarly|Clearly|Finally|In other words|For this reason)\b,? )?)"
    r"(?P<first>we(?! see| know| not| just| consider| let| define| choose)|"
    r"this(?! gives| means| implies| simplifies| leads| shows)|"
    r"there|the|it|each|every|all|any|one|both|I have|\$)\b",
    re.IGNORECASE,
)
_CONTINUES = re.compile(r"[.;:]\s|\b(?:so|if|since|because)\b|which means|which gives|\n| let | want | need ")
_SUPPOSITION = re.compile(r"\b(?:if|when|whenever|unless|let|suppose|assume|that|which|where)\b", re.IGNORECASE)


def opposites(step: str) -> Iterator[Edit]:
    """Put a word's opposite, or another operation in words."""
    for kind, pairs in (("opposite", _OPPOSITES), ("operation", _OPERATIONS)):
        for one, other in (*pairs, *(pair[::-1] for pair in pairs)):
            for match in re.finditer(rf"(?<![\w-]){re.escape(one)}(?![\w])", step, re.IGNORECASE):
                bound = re.search(r"\b(?:at least|at most|than) $", step[: match.start()])
                if is_claimed(step, *match.span()) and not bound:
                    yield _edit(step, match, other, kind, 2.0)
    for verb, preposition, other, its in (("add", "to", "subtract", "from"), ("subtract", "from", "add", "to")):
        pattern = rf"\b{verb}(ed|ing)?( (?:\S+ ){{1,6}}?){preposition}(?= (?:both|each|the|this|it)\b)"
        for match in re.finditer(pattern, step, re.IGNORECASE):
            yield _edit(step, match, f"{other}{match[1] or ''}{match[2]}{its}", "operation", 2.0)


def denials(step: str) -> Iterator[Edit]:
    """Deny what is claimed, or affirm what is denied."""
    for pattern, replacements in _DENIALS:
        whole = rf"\b{pattern}(?![A-Za-z])" if pattern[-1].isalpha() else rf"\b{pattern}"
        for match in re.finditer(whole, step, re.IGNORECASE):
            if _SUPPOSITION.search(re.split(r"[.,;:?!]\s", step[: match.start()])[-1]):
                continue
            for replacement in replacements:
                yield _edit(step, match, match.expand(replacement), "denial", 1.5 / len(replacements))


def leading_denials(step: str) -> Iterator[Edit]:
    """Deny a whole step that is one plain sentence."""
    match = _CLAUSE.match(step)
    if not match or _CONTINUES.search(step, match.end()) or is_denied(step):
        return
    start = match.start("first")
    first = "I" if step.startswith("I ", start) else step[start].lower()
    for text in _LEADS:
        lead = text if match["lead"] else text.capitalize()
        yield Edit(((start, start + 1, lead + first),), "frame", 0.3)


def false_endings(step: str) -> Iterator[Edit]:
    """Claim a contradiction where there is none, after a last clause that claims something in symbols."""
    claims = [statement for statement in statements(step) if statement.is_claim]
    last = claims[-1] if claims else None
    if last and re.fullmatch(r"[$\s]*\.", step[last.end :]) and is_claimed(step, last.start, last.end):
        end = step.rindex(".")
        yield from (Edit(((end, end, text),), "frame", 0.3) for text in _ENDINGS)


def _edit(step: str, match: re.Match[str], text: str, kind: str, weight: float) -> Edit:
    start, end = match.span()
    if match[0][0].isupper():
        text = text[0].upper() + text[1:]
    article = re.search(r"\b([Aa])n? $", step[:start])
    if article:
        start = article.start()
        text = article[1] + ("n " if text[0].lower() in "aeiou" else " ") + text
    return Edit(((start, end, text),), kind, weight)
