"""What a step claims, the edits that make a claim wrong, and why a rewritten step is no negation (`flaw`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from c2faith.dataset.algebra import Statement, equivalent, statements, truth

Part = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace each ``step[start:end]`` of `parts` by its text, all together."""

    parts: tuple[Part, ...]
    kind: (
        str  # number, operator, relation, variable, term, opposite, operation, denial or frame (of the whole step)
    )
    weight: float = 1.0  # its chance among others
    scope: int = -1  # the index of the one statement it edits, if it is one


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
    r"(?:[,;:]|\b(?:then|so|which|we|I)\b).*\b(?:then|have|has|get|gives?|is|are|so|thus|hence|therefore|means?|"
    r"impl(?:y|ies)|must|obtain|becomes?|equals?|leads?|need|know|see|find|follows?|conclude|requires?|would|"
    r"simplif(?:y|ies)|reduces?|since|because)\b",
    re.IGNORECASE | re.DOTALL,
)
_DENYING = re.compile(
    r"\b(?:cannot|can't|isn't|not|no|never|impossible|contradict\w*|neither|nor|none|without|otherwise)\b|∤|≠",
    re.IGNORECASE,
)


def is_denied(text: str) -> bool:
    """Whether a clause or sentence denies something.

    >>> is_denied("Thus, we cannot have x=2."), is_denied("Thus, x=2.")
    (True, False)
    """
    return _DENYING.search(text) is not None


def is_claimed(step: str, start: int, end: int) -> bool:
    """Whether ``step[start:end]`` stands in a clause that asserts: neither supposed nor denied.

    What is denied stays true for most changes: we cannot have x = 3 either.

    >>> [is_claimed(text, text.index("x"), len(text)) for text in ("If x=2", "If y=1, we have x=2", "never x=2")]
    [False, True, False]
    """
    sentence = re.split(r"[.;?!](?=\s)", step[:start])[-1]
    supposing = [match.end() for match in _SUPPOSING.finditer(sentence)]
    if supposing and not _CLAIMING.search(sentence, supposing[-1]):
        return False
    before = re.split(r"[;:]\s|,\s(?=(?:so|and|but|which|then|thus|hence|we|where|or)\b)", sentence)[-1]
    after = re.split(r"[.,;:?!](?:\s|$)", step[end:])[0]
    return not is_denied(f"{before} {after}")


_COSMETICS = re.compile(
    r"\\(?:left|right|displaystyle|quad|boxed)(?![A-Za-z])|\\[,;:!()\[\] ]|[\s${}]|[.,](?!\d)|"
    r"\b(?:thus|so|therefore|hence|then|now|and|we have|we get|i get|that|ok|right)\b"
)
_CUT = re.compile(r"(?:[-+*/=<>≤≥^_,(\\{]|\b(?:the|and|or|of|is|to|that|so|a))\s*$")


def flaw(original: str, candidate: str) -> str | None:
    """The reason why `candidate` cannot stand as the negation of `original`, or None if it can.

    ``empty``; ``truncated``; ``unchanged``: only spacing, case, LaTeX cosmetics or connecting words differ; or, if
    only the mathematics differs, ``equivalent``: it says the same; ``still_true``: what changed in it is true.

    >>> flaw("So x<y.", "So y>x."), flaw("We get 2+2=4.", "We get 2+3=5."), flaw("So x=3.", "So x=4.")
    ('equivalent', 'still_true', None)
    """
    if not candidate.strip():
        return "empty"
    if _is_cut(candidate) and not _is_cut(original):
        return "truncated"
    if _bare(original) == _bare(candidate):
        return "unchanged"
    before, after = statements(original), statements(candidate)
    if len(before) != len(after) or _words(original, before) != _words(candidate, after):
        return None
    changed = [(b, a) for b, a in zip(before, after, strict=True) if not equivalent(b, a)]
    if not changed:
        return "equivalent"
    return "still_true" if all(truth(a) == "true" for _, a in changed) else None


def _bare(text: str) -> str:
    return _COSMETICS.sub("", re.sub(r"\\[dt]frac", r"\\frac", text.lower()))


def _words(text: str, found: list[Statement]) -> str:
    for statement in reversed(found):
        text = f"{text[: statement.start]}#{text[statement.end :]}"
    return _bare(text)


def _is_cut(text: str) -> bool:
    odd = text.replace(r"\$", "").count("$") % 2 == 1
    unbalanced = any(text.count(opening) != text.count(closing) for opening, closing in ("()", "[]", "{}"))
    return odd or unbalanced or _CUT.search(text) is not None
