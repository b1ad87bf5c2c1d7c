"""Reply → Verdict: the only parser.

A verdict is read, never guessed: it is the last complete answer outside the reply's reasoning. Neither a draft nor
what stands inside something unreadable is one. What cannot be read is a status of its own, never −1, a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from pydantic import ValidationError

from c2faith.judging import answers, tasks
from c2faith.judging.objects import Found, objects, outside_reasoning

Failure = Literal["refusal", "content_filter", "length", "too_long", "parse_error", "schema_error", "api_error"]
Status = Literal["ok", Failure]
Tags = tuple[str, ...]
_WORDS: Mapping[Status, str] = {
    "ok": "stop eos end_turn stop_sequence complete completed tool_calls tool_use function_call",
    "length": "length max_tokens max_output_tokens model_length model_context_window_exceeded",
    "content_filter": "content_filter safety recitation blocklist prohibited_content",
    "refusal": "refusal",
}
FINISHED: Mapping[str, Status] = {word: status for status, words in _WORDS.items() for word in words.split()}
"""What servers call the end of a reply, in lower case, and what it makes of the reply."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the parser read.

    `value` is the score or index, or None when `status` is not ``ok``; `tags` say how it was found (``think``,
    ``fenced``, ``prose``, ``escaped``, ``literal``, ``coerced``, ``tool``, ``reasoning_content``).
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
        ``parse_error`` if no JSON object can be found, or the last one that might be the answer cannot be read;
        ``schema_error`` if an object has no usable value or one out of range. Integral strings and floats are
        coerced and tagged; nothing is shifted.

    Examples
    --------
    >>> parse('{"reasoning": "2 + 2 is 4", "score": 0}', "detection", 5)
    Verdict(value=0, status='ok', reasoning='2 + 2 is 4', tags=())
    >>> parse('I think {"index": "Step 3"}', "localization", 5).value
    3
    >>> parse('{"index": 5}', "localization", 5).status
    'schema_error'
    >>> parse('{"reasoning": "he wrote "x" and {"index": 0} is it", "index": 4}', "localization", 5).status
    'parse_error'
    """
    key = answers.key(tasks.get(task).answer)
    whole, tags = objects(text or ""), ()
    if not (len(whole) == 1 and whole[0].value is not None and whole[0].text == (text or "").strip()):
        said, tags = outside_reasoning(text or "")
        whole = objects(said) if tags else whole
    for found in reversed(whole):
        if found.value is None and _may_answer(found, key):
            return Verdict(None, "parse_error", tags=tags)
        if found.value is not None and key in found.value:
            return _read(found, task, n_steps, tags)
    if readable := [found for found in whole if found.value is not None]:
        return Verdict(None, "schema_error", answers.text(readable[0].value.get("reasoning", "")), readable[0].tags)
    return Verdict(None, "parse_error", tags=tags)


def _may_answer(found: Found, key: str) -> bool:
    """Whether something unreadable may have been meant as the answer; {x : x > 0} is not."""
    return found.text.lstrip("{[ \t\r\n")[:1] in ('"', "'", "“") or key in found.text


def _read(found: Found, task: str, n_steps: int, tags: Tags) -> Verdict:
    kind = tasks.get(task).answer
    key = answers.key(kind)
    tags += found.tags
    if type(found.value[key]) is not int and answers.integral(found.value[key]) is not None:
        tags += ("coerced",)
    try:
        answer = kind.model_validate(found.value, context=n_steps, extra="ignore")
    except ValidationError:
        return Verdict(None, "schema_error", answers.text(found.value.get("reasoning", "")), tags)
    return Verdict(getattr(answer, key), "ok", answer.reasoning, tags)


def finished(reason: Any) -> Status:
    """What a server's word for the end of a reply makes of it: ``api_error``, which is not final, if it is unknown.

    >>> finished("stop"), finished("MAX_TOKENS"), finished("abort"), finished(None)
    ('ok', 'length', 'api_error', 'ok')
    """
    if reason is None:
        return "ok"
    return FINISHED.get(reason.lower(), "api_error") if isinstance(reason, str) else "api_error"


def failure(row: Mapping[str, Any]) -> Status | None:
    """The status of a journal row whose text is not to be read; None for one whose text is."""
    if error := row.get("error"):
        return error if error in get_args(Status) else "api_error"
    status = finished(row.get("finish_reason"))
    return None if status == "ok" else status


def read_reply(row: Mapping[str, Any], task: str, n_steps: int) -> Verdict:
    """The verdict of a journal row: its failure if it is one, else what its text says.

    A reply cut off at the token limit is ``length`` whatever its beginning says. Where there is no text, an answer
    in a tool call's arguments is one, and so is one that is all of the ``reasoning_content``; reasoning alone is
    none, and kept.
    """
    if status := failure(row):
        return Verdict(None, status)
    text, extra = row.get("text"), row.get("extra") or {}
    if (text or "").strip():
        return parse(text, task, n_steps)
    for name, tag in (("tool_arguments", "tool"), ("reasoning_content", "reasoning_content")):
        if said := answers.text(extra.get(name) or ""):
            verdict = parse(said, task, n_steps)
            drafted = tag != "tool" and {"prose", "fenced", "think"} & set(verdict.tags)
            if drafted or verdict.status == "parse_error":
                return Verdict(None, "parse_error", said, (tag,))
            return replace(verdict, tags=(tag, *verdict.tags))
    return Verdict(None, "parse_error")
