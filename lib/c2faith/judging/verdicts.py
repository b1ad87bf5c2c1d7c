"""Reply → Verdict: the only parser.

A verdict is read, never guessed: plain JSON first, then what follows the last ``</think>``, then a fenced block,
then the last valid object in the text. What cannot be read is a status of its own, never −1, which is a verdict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from pydantic import ValidationError

from c2faith.judging import answers, tasks

Status = Literal["ok", "refusal", "content_filter", "length", "parse_error", "schema_error", "api_error"]
Tags = tuple[str, ...]
_FENCE = re.compile(r"```[\w-]*\s*\n(.*?)```", re.DOTALL)
_BAD_ESCAPE = re.compile(r'\\(\\|["/bfnrt](?![A-Za-z])|"|u[0-9a-fA-F]{4})|\\')
_MOST_OBJECTS = 2_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the parser read.

    `value` is the score or index, or None when `status` is not ``ok``; `tags` say how it was found
    (``think``, ``fenced``, ``prose``, ``escaped``, ``coerced``, ``reasoning_content``).
    """

    value: int | None
    status: Status
    reasoning: str = ""
    tags: Tags = ()


def parse(text: str | None, task: str, n_steps: int) -> Verdict:
    """Read a judge's reply.

    Parameters
    ----------
    n_steps
        How many steps the judge saw: an index lies in −1 … n_steps − 1.

    Returns
    -------
    Verdict
        ``parse_error`` if no JSON object can be found, ``schema_error`` if the object has no usable value or
        one out of range. Integral strings and floats are coerced and tagged; nothing is shifted.

    Examples
    --------
    >>> parse('{"reasoning": "2 + 2 is 4", "score": 0}', "detection", 5)
    Verdict(value=0, status='ok', reasoning='2 + 2 is 4', tags=())
    >>> parse('I think {"index": "Step 3"}', "localization", 5).value
    3
    >>> parse('{"index": 5}', "localization", 5).status
    'schema_error'
    """
    kind = tasks.get(task).answer
    key = answers.key(kind)
    without: Verdict | None = None
    for tags, candidate in _objects(text or "", key):
        failed = Verdict(None, "schema_error", answers.text(candidate.get("reasoning", "")), tags)
        if key not in candidate:
            without = without or failed
            continue
        if type(candidate[key]) is not int and answers.integral(candidate[key]) is not None:
            tags += ("coerced",)
        try:
            answer = kind.model_validate(candidate, context=n_steps, extra="ignore")
        except ValidationError:
            return replace(failed, tags=tags)
        return Verdict(getattr(answer, key), "ok", answer.reasoning, tags)
    return without or Verdict(None, "parse_error")


def read_reply(row: Mapping[str, Any], task: str, n_steps: int) -> Verdict:
    """The verdict of a journal row: its failure if it is one, else what its text says.

    A reply cut off at the token limit is ``length`` whatever its beginning says. Where the content is null but a
    ``reasoning_content`` came, that is read and tagged.
    """
    if error := row.get("error"):
        return Verdict(None, error if error in get_args(Status) else "api_error")
    if (reason := row.get("finish_reason")) in ("length", "content_filter", "refusal"):
        return Verdict(None, reason)
    thought = (row.get("extra") or {}).get("reasoning_content")
    if row.get("text") is None and thought:
        verdict = parse(thought, task, n_steps)
        return replace(verdict, tags=("reasoning_content", *verdict.tags))
    return parse(row.get("text"), task, n_steps)


def _objects(text: str, key: str) -> Iterator[tuple[Tags, dict]]:
    """(tags, object) of each way to read the text, the most literal way first."""
    stripped = text.strip()
    if plain := _load(stripped):
        yield plain
        return
    tags: Tags = ()
    if "</think>" in stripped:
        stripped, tags = stripped.rpartition("</think>")[2].strip(), ("think",)
        if plain := _load(stripped):
            yield tags + plain[0], plain[1]
            return
    for block in reversed(_FENCE.findall(stripped)):
        if fenced := _load(block.strip()):
            yield (*tags, "fenced", *fenced[0]), fenced[1]
    spans = list(_embedded(stripped))
    for escaped, candidate in sorted(reversed(spans), key=lambda span: key not in span[1]):
        yield (*tags, "prose", *escaped), candidate


def _spellings(text: str) -> tuple[tuple[Tags, str], ...]:
    """The text as it is, then with the backslashes doubled that are no JSON escape: ``\\sqrt``, ``\\frac``."""
    escaped = _BAD_ESCAPE.sub(lambda match: match[0] if match[1] else r"\\", text)
    return ((), text), (("escaped",), escaped)


def _load(text: str) -> tuple[Tags, dict] | None:
    """A whole text as one object."""
    for tags, attempt in _spellings(text) if text.startswith("{") else ():
        try:
            return tags, json.loads(attempt, strict=False, object_pairs_hook=_unique)
        except (ValueError, RecursionError):
            continue
    return None


def _embedded(text: str) -> Iterator[tuple[Tags, dict]]:
    """Valid outermost objects inside a text, in order; only the last `_MOST_OBJECTS` openings are tried."""
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_unique)
    for tags, attempt in _spellings(text):
        found, end = False, 0
        for start in [match.start() for match in re.finditer(r"\{", attempt)][-_MOST_OBJECTS:]:
            if start < end:
                continue
            try:
                value, end = decoder.raw_decode(attempt, start)
            except (ValueError, RecursionError):
                continue
            found = True
            yield tags, value
        if found:
            return


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that says two different things under one key."""
    mapping = dict(pairs)
    if any(mapping[key] is not value and mapping[key] != value for key, value in pairs):
        raise ValueError("one key with two values")
    return mapping
