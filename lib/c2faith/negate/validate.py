"""Why a rewritten step is no negation of the original."""

from __future__ import annotations

import re

_COSMETICS = re.compile(r"\\(?:left|right|,|;|!|displaystyle)(?![A-Za-z])|[\s${}]|\\[()\[\]]")


def _normalized(step: str) -> str:
    return _COSMETICS.sub("", step).casefold().rstrip(".")


def flaw(original: str, candidate: str) -> str | None:
    """The reason why `candidate` cannot stand as the negation of `original`, or None if it can."""
    if not candidate.strip():
        return "empty"
    if _normalized(original) == _normalized(candidate):
        return "unchanged"
    return None
