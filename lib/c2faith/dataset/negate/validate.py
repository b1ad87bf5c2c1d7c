"""Why a rewritten step is no negation of the original."""

from __future__ import annotations

import re

from c2faith.dataset.algebra import Statement, equivalent, statements, truth

_COSMETICS = re.compile(
    r"\\(?:left|right|displaystyle|quad|boxed)(?![A-Za-z])|\\[,;:!()\[\] ]|[\s${}]|[.,](?!\d)|"
    r"\b(?:thus|so|therefore|hence|then|now|and|we have|we get|i get|that|ok|right)\b"
)
_CUT = re.compile(r"(?:[-+*/=<>≤≥^_,(\\{]|\b(?:the|and|or|of|is|to|that|so|a))\s*$")
_BRACKETS = "()[]{}"


def flaw(original: str, candidate: str) -> str | None:
    """The reason why `candidate` cannot stand as the negation of `original`, or None if it can.

    Returns
    -------
    str or None
        ``empty``; ``truncated``: it breaks off, in a word or between brackets or dollar signs; ``unchanged``: only
        spacing, case, LaTeX cosmetics or connecting words differ; ``equivalent``: the words are the same and the
        mathematics says the same (a + b and b + a, 2/4 and 1/2, x < y and y > x); ``still_true``: the words are the
        same and what changed in the mathematics is an identity or a true numeric statement.

    Examples
    --------
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
    """The text without its mathematics."""
    for statement in reversed(found):
        text = f"{text[: statement.start]}#{text[statement.end :]}"
    return _bare(text)


def _is_cut(text: str) -> bool:
    odd = text.replace(r"\$", "").count("$") % 2 == 1
    return (
        odd
        or any(text.count(a) != text.count(b) for a, b in zip(_BRACKETS[::2], _BRACKETS[1::2], strict=True))
        or (_CUT.search(text) is not None)
    )
