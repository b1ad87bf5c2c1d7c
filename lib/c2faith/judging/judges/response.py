"""What came of one call: a completion or an error, as a `Reply` and what should follow. Pure functions.

The live client and the Batch API read their answers here, so both give the same statuses.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from c2faith.judging.judges.base import Reply

Kind = Literal["answer", "rate_limit", "transient", "rejected", "fatal"]
LONGEST_MESSAGE = 300
_QUOTA = re.compile(
    r"insufficient.?(quota|balance|funds)|exceeded your current quota|billing|credit balance|"
    r"account.{0,20}deactivated",
    re.IGNORECASE,
)
_UNKNOWN_MODEL = re.compile(
    r"model.{0,80}(does not exist|not exist|not found|unknown)|unknown model", re.IGNORECASE
)
_FILTERED = re.compile(r"content_?filter|content management policy|ResponsibleAIPolicyViolation", re.IGNORECASE)
_TOO_LONG = re.compile(r"context_length_exceeded|(maximum|max\w*) (context|model|prompt) len", re.IGNORECASE)
_PASSING = (408, 409, 425)  # timeout, conflict, too early


@dataclass(frozen=True, slots=True)
class Response:
    """One call's reply and its kind.

    ``answer``: the judge's own, whatever its status. ``rate_limit``: ask again when the limit allows.
    ``transient``: ask again, a few times. ``rejected``: the server does not take this request. ``fatal``: it
    will take none (key, quota, model).
    """

    kind: Kind
    reply: Reply
    message: str = ""
    code: str = ""
    param: str = ""
    wait_s: float | None = None

    def refusal(self) -> str:
        """One line on a server that will take no request."""
        status = self.reply.extra.get("http_status")
        what = {401: "the key is refused", 402: "the account has no credit", 403: "access is denied"}.get(status)
        what = what or ("the quota is used up" if status == 429 else "the model or address is unknown")
        return f"{what} (HTTP {status}: {self.message}); finished items are kept, the same command resumes"


def from_completion(body: Any, request_id: str | None = None) -> Response:
    """Read a chat completion's JSON.

    Anything that is no completion (an error or a page sent with status 200) is transient.
    """
    body = body if isinstance(body, Mapping) else {}
    choice = _first_choice(body.get("choices"))
    if choice is None:
        if body.get("error"):
            return from_error(200, body, request_id=request_id)
        return _failure("transient", "no chat completion in the reply", 200, request_id)
    message, finish_reason, error = choice["message"], choice.get("finish_reason"), None
    extra: dict[str, Any] = {"request_id": request_id} if request_id else {}
    text = message.get("content")
    if isinstance(text, list):
        text = "".join(str(part.get("text") or "") for part in text if isinstance(part, Mapping))
    if finish_reason == "content_filter":
        error = "content_filter"
    elif message.get("refusal") or finish_reason == "refusal":
        error = "refusal"
        extra["refusal"] = message.get("refusal") or text
    elif text is None and (thought := message.get("reasoning_content") or message.get("reasoning")):
        extra["reasoning_content"] = thought
    if fingerprint := body.get("system_fingerprint"):
        extra["system_fingerprint"] = fingerprint
    model = body.get("model")
    reply = Reply(
        text=text,
        finish_reason=finish_reason,
        usage=read_usage(body.get("usage")),
        model=model if isinstance(model, str) else "",
        error=error,
        extra=extra,
    )
    return Response("answer", reply)


def _first_choice(choices: Any) -> Mapping[str, Any] | None:
    """The first choice, if it has a message whose content is a text, parts of one, or none."""
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    fits = isinstance(message, Mapping) and isinstance(message.get("content"), str | list | None)
    return choice if fits else None


def read_usage(usage: Any) -> dict[str, int]:
    """Token counts under our names; a server's own extras, absent counts and negative ones are left out.

    >>> read_usage({"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}})
    {'prompt_tokens': 9, 'completion_tokens': 5, 'cached_tokens': 4}
    """
    if not isinstance(usage, Mapping):
        return {}
    parts = [usage.get(f"{side}_tokens_details") for side in ("prompt", "completion")]
    inside, outside = (part if isinstance(part, Mapping) else {} for part in parts)
    counts = {
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": usage.get("completion_tokens"),
        "cached_tokens": inside.get("cached_tokens") or usage.get("prompt_cache_hit_tokens"),
        "reasoning_tokens": outside.get("reasoning_tokens"),
    }
    return {name: count for name, count in counts.items() if type(count) is int and 0 <= count < 2**53}


def from_error(
    status: int | None, body: Any, headers: Mapping[str, str] | None = None, request_id: str | None = None
) -> Response:
    """Read an error's status and JSON body (the ``error`` object or what holds it); no status: no connection."""
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    inner = inner if isinstance(inner, Mapping) else {"message": str(inner or "")}
    message = " ".join(str(inner.get("message") or inner.get("detail") or inner).split())[:LONGEST_MESSAGE]
    code, param = (str(inner.get(name) or "") for name in ("code", "param"))
    words = " ".join((code, str(inner.get("type") or ""), str(inner.get("innererror") or ""), message))
    if status == 429 and not _QUOTA.search(words):
        kind: Kind = "rate_limit"
    elif status in (401, 402, 403, 404, 429):
        kind = "fatal"
    elif status is None or not 400 <= status < 500 or status in _PASSING:
        kind = "transient"
    elif _FILTERED.search(words):
        return _failure("answer", message, status, request_id, error="content_filter")
    elif _TOO_LONG.search(words):
        return _failure("answer", message, status, request_id, error="length")
    else:
        kind = "fatal" if _QUOTA.search(words) or _UNKNOWN_MODEL.search(words) else "rejected"
    found = _failure(kind, message, status, request_id)
    return replace(found, code=code, param=param, wait_s=retry_after(headers or {}))


def from_batch_row(row: Mapping[str, Any]) -> Response:
    """Read one line of a batch's output or error file.

    A rate limit within a batch is a failure like any other: another batch asks again, a few times.
    """
    answer = row.get("response") or {}
    status, body = answer.get("status_code"), answer.get("body")
    if status == 200:
        return from_completion(body, answer.get("request_id"))
    found = from_error(status, body or row.get("error"), request_id=answer.get("request_id"))
    return replace(found, kind="transient") if found.kind == "rate_limit" else found


def from_exception(error: Exception) -> Response:
    """Read what the SDK, its transport or our own deadline raised; raise what is none of theirs."""
    import aiohttp
    import openai

    if isinstance(error, openai.APIStatusError):
        return from_error(error.status_code, error.body, error.response.headers, error.request_id)
    if isinstance(error, openai.APIResponseValidationError):
        return _failure("transient", "the reply is no JSON", error.status_code)
    if isinstance(error, openai.APIConnectionError | aiohttp.ClientError | OSError):
        return _failure("transient", _root(error))
    raise error


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds a server asks to wait, from ``retry-after-ms`` or ``retry-after`` (seconds or an HTTP date).

    >>> retry_after({"retry-after": "34"})
    34.0
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            wait = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        return wait if 0 <= wait < float("inf") else None
    try:
        until = parsedate_to_datetime(headers.get("retry-after", "")).timestamp()
    except (ValueError, TypeError):
        return None
    return max(0.0, until - (time.time() if now is None else now))


def _root(error: BaseException) -> str:
    """What a chain of wrapped exceptions is about. The transport reports a dropped connection as a timeout."""
    while not isinstance(error, TimeoutError) and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, TimeoutError):
        return "timeout"
    return f"{type(error).__name__}: {error}"[:LONGEST_MESSAGE] if str(error) else type(error).__name__


def _failure(
    kind: Kind, message: str, status: int | None = None, request_id: str | None = None, *, error: str = "api_error"
) -> Response:
    extra = {"http_status": status, "request_id": request_id, "message": message}
    extra = {name: value for name, value in extra.items() if value is not None}
    finish_reason = error if error != "api_error" else None
    return Response(kind, Reply(text=None, finish_reason=finish_reason, error=error, extra=extra), message=message)
