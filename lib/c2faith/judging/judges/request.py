"""What a query is sent as, and after each response whether and how it is sent again.

Structured output comes on three rungs: ``json_schema`` (the schema enforced), ``json_object`` (JSON enforced, the
schema in the prompt) and ``text`` (the prompt asks for JSON). Nothing is guessed from a model's name: a
rejection moves the request one step, and the model's dialect remembers it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tenacity.wait import wait_base

from c2faith.judging import answers, tasks, verdicts
from c2faith.judging.judges.base import Query
from c2faith.judging.judges.concurrency import backoff_s
from c2faith.judging.judges.response import Response

RUNGS = ("json_schema", "json_object", "text")
CAPS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
LONGER = 4  # a reply that hit its cap is asked for once more with this many times the tokens
_RESPONSE_FORMAT = re.compile(r"response_?format|json_?schema|json_?object|structured output|guided|grammar", re.I)
_REFUSED = re.compile(
    r"unsupported|not support|does not support|unrecognized|unknown|unexpected|not permitted|not allowed|"
    r"extra (fields|inputs)|invalid (parameter|argument)|only the default",
    re.IGNORECASE,
)


class Dialect:
    """How a model wants to be asked: its accepted rung and parameters, learnt as calls are rejected.

    `parameters` are fields of the request's body, as asked for: those the judge's fingerprint is made from.
    """

    def __init__(self, model: str, parameters: Mapping[str, Any]):
        self.model, self.asked = model, dict(parameters)
        self.parameters = dict(parameters)
        self.rung = RUNGS[0]
        self.version = 0

    @property
    def cap(self) -> int | None:
        """Most tokens of a reply, where the parameters set it."""
        return next((self.parameters[name] for name in CAPS if self.parameters.get(name)), None)

    @property
    def changed(self) -> dict[str, Any]:
        """The parameters in effect, if they differ from those asked for; for the journal."""
        return {} if self.parameters == self.asked else {"parameters": self.parameters}

    def request(self, query: Query, *, longer: bool = False) -> dict[str, Any]:
        """The request's body for a query."""
        messages = [{"role": role, "content": content} for role, content in query.messages]
        request = {"model": self.model, "messages": messages, **self.parameters}
        if longer:
            request |= {name: LONGER * self.parameters[name] for name in CAPS if self.parameters.get(name)}
        if tasks.get(query.task).answer is None or self.rung == "text":
            return request
        if self.rung == "json_object":
            messages[0] = {**messages[0], "content": f"{messages[0]['content']}\n{_schema_note(query.task)}"}
        return request | {"response_format": _response_format(query.task, self.rung)}

    def adapt(self, response: Response, version: int) -> str:
        """Change what a rejection complains about; says what changed, or nothing if it is about something else.

        `version` is the dialect's when the call went out: if another call's rejection has changed it since, that
        was the change.
        """
        if version != self.version:
            return "changed meanwhile"
        change = self._adapt(response)
        self.version += bool(change)
        return change

    def _adapt(self, response: Response) -> str:
        words = f"{response.param} {response.code} {response.message}"
        if self.rung != RUNGS[-1] and _RESPONSE_FORMAT.search(words):
            before, self.rung = self.rung, RUNGS[RUNGS.index(self.rung) + 1]
            return f"{before} is not available, {self.rung} is used"
        if not _REFUSED.search(f"{response.code} {response.message}"):
            return ""
        if response.param:
            return self._drop(response.param) if response.param in self.parameters else ""
        named = {name: re.search(rf"\b{name}\b", response.message) for name in self.parameters}
        found = sorted((match.start(), name) for name, match in named.items() if match)
        return self._drop(found[0][1]) if found else ""

    def _drop(self, name: str) -> str:
        value, other = self.parameters.pop(name), CAPS.get(name)
        if other is None or other in self.parameters or name not in self.asked:
            return f"{name} is not accepted and left out"
        self.parameters[other] = value
        return f"{name} is not accepted, {other} is used"


@cache
def _response_format(task: str, rung: str) -> dict[str, Any]:
    if rung == "json_object":
        return {"type": "json_object"}
    schema = {"name": "verdict", "strict": True, "schema": answers.schema(tasks.get(task).answer)}
    return {"type": "json_schema", "json_schema": schema}


@cache
def _schema_note(task: str) -> str:
    return f"The JSON object must match this JSON schema: {json.dumps(answers.schema(tasks.get(task).answer))}"


@dataclass(frozen=True, slots=True)
class Again:
    """Ask again after `wait_s`; `change` says how the request changed."""

    wait_s: float = 0.0
    change: str = ""


class Attempts:
    """What one query has used up of the calls that it may take.

    A rate limit costs nothing but time. Broken connections and server errors are tried `most` times. A
    rejected form is changed as often as the dialect finds something to change. A reply cut off at its cap is
    asked for once more with a larger one; one that cannot be read, once more as it was (where a task has no
    verdict to be read, never: whoever asked judges the text).
    """

    def __init__(self, query: Query, dialect: Dialect, most: int, backoff: wait_base):
        self.query = query
        self.reserve: float | None = None  # dollars set aside for the call under way
        self._dialect, self._most, self._backoff = dialect, most, backoff
        self._failures = 0
        self._longer = self._resampled = False
        self._version = dialect.version

    @property
    def cap(self) -> int | None:
        """Most tokens of the next call's reply, where the parameters set it."""
        cap = self._dialect.cap
        return LONGER * cap if cap and self._longer else cap

    def request(self) -> dict[str, Any]:
        """The next call's body."""
        self._version = self._dialect.version
        return self._dialect.request(self.query, longer=self._longer)

    def after(self, response: Response) -> Again | None:
        """How to go on after a call; None if its response stands."""
        if response.kind == "rate_limit":
            return Again()
        if response.kind == "transient":
            self._failures += 1
            wait_s = max(backoff_s(self._backoff, self._failures), response.wait_s or 0.0)
            return Again(wait_s) if self._failures < self._most else None
        if response.kind == "rejected":
            change = self._dialect.adapt(response, self._version)
            return Again(change=change) if change else None
        if response.kind == "fatal" or response.reply.error or tasks.get(self.query.task).answer is None:
            return None
        return Again() if self._another_sample(response) else None

    def _another_sample(self, response: Response) -> bool:
        reply = response.reply
        if reply.finish_reason == "length":
            again = not self._longer and self._dialect.cap is not None
            self._longer |= again
            return again
        if self._resampled or "reasoning_content" in reply.extra:
            return False
        self._resampled = verdicts.parse(reply.text, self.query.task, self.query.n_steps).status == "parse_error"
        return self._resampled
