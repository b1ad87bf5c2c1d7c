"""The JSON objects in a reply's text, outermost ones alone: what is inside something unreadable is never an answer.

Every pass is linear in the text's length, whatever the text.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

LONGEST_LITERAL = 100_000
MOST_UNREAD = 100  # json looks through all of a text to say where it failed
_BLOCK = re.compile(r"<\s*(/?)\s*(?:think|thinking|thought|reasoning)\s*>|\[(/?)think\]|◁(/?)think▷", re.IGNORECASE)
_FINAL, _CHANNEL = "<|channel|>final<|message|>", "<|channel|>"
_OPENING = re.compile(r"\[\s*\{|\{\s*(?:[\"'“]|[A-Za-z_]\w*\s*:|\})")
_BRACKETS = {"{": re.compile(r"[{}]"), "[": re.compile(r"[\[\]]")}
_BAD_ESCAPE = re.compile(r'\\(\\|["/bfnrt](?![A-Za-z])|"|u[0-9a-fA-F]{4})|\\')


@dataclass(frozen=True, slots=True)
class Found:
    """An object with the text it stands in; `value` is None where that cannot be read, `tags` say how it was."""

    value: dict[str, Any] | None
    text: str
    tags: tuple[str, ...] = ()


def outside_reasoning(text: str) -> tuple[str, tuple[str, ...]]:
    """What a reply says outside its reasoning blocks, and the tag ``think`` if it has any.

    Nothing after the beginning of a block that is never closed is an answer; a closing tag alone ends what a chat
    template has opened.

    >>> outside_reasoning('<think>{"index": 1}?</think> {"index": 2}')
    (' {"index": 2}', ('think',))
    >>> outside_reasoning('<think> perhaps {"index": 1}')
    ('', ('think',))
    """
    if _CHANNEL in text:
        return text.rpartition(_FINAL)[2] if _FINAL in text else "", ("think",)
    kept: list[str] = []
    start, inside, tags = 0, False, ()
    for match in _BLOCK.finditer(text):
        tags = ("think",)
        if any(match.groups()):
            kept = kept if inside else []
            inside, start = False, match.end()
        elif not inside:
            kept.append(text[start : match.start()])
            inside = True
    if not inside:
        kept.append(text[start:])
    return "".join(kept), tags


def objects(text: str) -> list[Found]:
    """The outermost objects of a text, in order, readable or not.

    Where one is no JSON, backslashes of LaTeX that JSON forbids are escaped; then a Python literal will do (single
    quotes, a comma too many). What still cannot be read is kept without a value, up to the bracket that closes it
    or, cut off, to the end of the text.

    >>> [found.value for found in objects('first {"index": 1}, no: {"index": 4}')]
    [{'index': 1}, {'index': 4}]
    >>> [found.value for found in objects("{'reasoning': 'quotes {\\"index\\": 2}', 'index': 6}")]
    [{'reasoning': 'quotes {"index": 2}', 'index': 6}]
    >>> [found.value for found in objects('{"steps": [{"index": 0}, {"index": 3')]
    [None]
    """
    text = text.strip()
    best = list(_scan(text))
    for attempt in ({"tags": ("escaped",)}, {"literal": True}):
        if unread := sum(one.value is None for one in best):
            found = list(_scan(_escape(text) if "tags" in attempt else text, **attempt))
            best = found if sum(one.value is None for one in found) < unread else best
    return best


def _scan(text: str, *, tags: tuple[str, ...] = (), literal: bool = False) -> Iterator[Found]:
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_unique)
    fences, end, unread = 0, 0, 0
    while opening := _OPENING.search(text, end):
        start, before = opening.start(), end
        fences += text.count("```", before, start)
        place = ("fenced",) if fences % 2 else ("prose",)
        try:
            value, end = decoder.raw_decode(text, start)
            read: tuple[str, ...] = ()
        except (ValueError, RecursionError):
            unread += 1
            end = (unread < MOST_UNREAD and _closed(text, start)) or len(text)
            value, read = _literal(text[start:end]) if literal else None, ("literal",)
        if isinstance(value, list):
            value = value[0] if len(value) == 1 and isinstance(value[0], dict) else {}
        whole = start == 0 and end == len(text)
        yield Found(value, text[start:end], (() if whole else place) + tags + read * (value is not None))


def _closed(text: str, start: int) -> int | None:
    # Strings are not looked at: their quotes may be what is broken.
    depth = 0
    for match in _BRACKETS[text[start]].finditer(text, start):
        depth += 1 if match[0] == text[start] else -1
        if not depth:
            return match.end()
    return None


def _literal(span: str) -> Any:
    """What a Python literal of plain values says; None if it is none."""
    if len(span) > LONGEST_LITERAL:
        return None
    try:
        tree = ast.parse(span, mode="eval").body
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict):
                keys = [ast.literal_eval(name) for name in node.keys]
                _unique([(name, id(value)) for name, value in zip(keys, node.values, strict=True)])
        value = ast.literal_eval(tree)
        return value if isinstance(value, dict | list) else None
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


def _escape(text: str) -> str:
    """Double the backslashes that are no JSON escape: ``\\sqrt``, and ``\\frac`` (no form feed is meant)."""
    return _BAD_ESCAPE.sub(lambda match: match[0] if match[1] else r"\\", text)


def _unique(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Refuse an object that says two different things under one key."""
    mapping = dict(pairs)
    if any(mapping[key] is not value and mapping[key] != value for key, value in pairs):
        raise ValueError("one key with two values")
    return mapping
