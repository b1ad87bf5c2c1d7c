"""Reply → Verdict: the only parser.

A verdict is read, never guessed: plain JSON first, then what follows the last ``</think>``, then a fenced
block, then the last valid object in the text. What cannot be read is a status of its own, never −1, which is a
verdict ("no inconsistency").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from c2faith.judging import answers, tasks

Status = Literal["ok", "refusal", "content_filter", "length", "parse_error", "schema_error", "api_error"]
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
    tags: tuple[str, ...] = ()


def parse(text: str | None, task: str, n_steps: int) -> Verdict:
    """Read a judge's reply.

    Parameters
    ----------
    text
        The raw completion.
    task
        A name of `tasks.TASKS`.
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
    found: Verdict | None = None
    for tags, candidate in _objects(text or "", key):
        if key not in candidate:
            found = found or Verdict(None, "schema_error", _reasoning(candidate), tags)
            continue
        if type(candidate[key]) is not int and answers.integral(candidate[key]) is not None:
            tags += ("coerced",)
        try:
            answer = kind.model_validate(candidate, context=n_steps, extra="ignore")
        except ValidationError:
            return Verdict(None, "schema_error", _reasoning(candidate), tags)
        return Verdict(getattr(answer, key), "ok", answer.reasoning, tags)
    return found or Verdict(None, "parse_error")


def read_reply(row: Mapping[str, Any], task: str, n_steps: int) -> Verdict:
    """The verdict of a journal row: its failure if it is one, else what its text says.

    A reply cut off at the token limit is ``length`` whatever its beginning says. Where the content is null but a
    ``reasoning_content`` came, that is read and tagged.
    """
    error = row.get("error")
    if error:
        return Verdict(None, error if error in Status.__args__ else "api_error")
    by_reason = {"length": "length", "content_filter": "content_filter", "refusal": "refusal"}
    if (reason := row.get("finish_reason")) in by_reason:
        return Verdict(None, by_reason[reason])
    text, tags = row.get("text"), ()
    if text is None and (thought := (row.get("extra") or {}).get("reasoning_content")):
        text, tags = thought, ("reasoning_content",)
    verdict = parse(text, task, n_steps)
    return Verdict(verdict.value, verdict.status, verdict.reasoning, tags + verdict.tags)


def _objects(text: str, key: str) -> Iterator[tuple[tuple[str, ...], dict]]:
    """(tags, object) of each way to read the text, the most literal way first."""
    stripped = text.strip()
    if plain := _load(stripped):
        yield plain
        return
    tags: tuple[str, ...] = ()
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


def _load(text: str) -> tuple[tuple[str, ...], dict] | None:
    """A whole text as one object; LaTeX backslashes that JSON forbids are escaped and tagged."""
    if not text.startswith("{"):
        return None
    for tags, attempt in (((), text), (("escaped",), _escape(text))):
        try:
            value = json.loads(attempt, strict=False, object_pairs_hook=_unique)
        except (ValueError, RecursionError):
            continue
        return tags, value
    return None


def _embedded(text: str) -> Iterator[tuple[tuple[str, ...], dict]]:
    """Valid outermost objects inside a text, in order; only the last `_MOST_OBJECTS` openings are tried."""
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_unique)
    for tags, attempt in (((), text), (("escaped",), _escape(text))):
        openings = [match.start() for match in re.finditer(r"\{", attempt)][-_MOST_OBJECTS:]
        found, end = False, 0
        for start in openings:
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


def _escape(text: str) -> str:
    """Double the backslashes that are no JSON escape: ``\\sqrt``, and ``\\frac`` (no form feed is meant)."""
    return _BAD_ESCAPE.sub(lambda match: match[0] if match[1] else r"\\", text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that says two different things under one key."""
    mapping = dict(pairs)
    if any(mapping[key] is not value and mapping[key] != value for key, value in pairs):
        raise ValueError("one key with two values")
    return mapping


def _reasoning(candidate: dict) -> str:
    return answers.text(candidate.get("reasoning", ""))
