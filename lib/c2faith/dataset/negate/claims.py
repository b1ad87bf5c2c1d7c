"""What a step claims, as against what it supposes or denies; and the edits that make claims wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

Part = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace each ``step[start:end]`` of `parts` by its text, all together.

    `kind` is number, operator, relation, variable, term, opposite, operation, denial or frame (a denial of the
    whole step); `weight` its chance among others; `scope` the index of the statement it edits, or −1 where it edits
    words or several statements.
    """

    parts: tuple[Part, ...]
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

    Supposed is what follows a word like "if" or "let", up to the next clause that claims something. What is denied
    is left alone because it stays true for most changes: we cannot have x = 3 either.

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
