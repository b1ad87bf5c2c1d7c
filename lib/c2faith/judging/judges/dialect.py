"""How a model wants to be asked: the request's form, and what to change when a server rejects it.

Structured output comes on three rungs: ``json_schema`` (the schema enforced), ``json_object`` (JSON enforced, the
schema in the prompt) and ``text`` (the prompt asks for JSON). Nothing is guessed from a model's name: a
rejection moves the request one step, and the model's dialect remembers it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from c2faith.judging import answers, tasks
from c2faith.judging.judges.base import Query
from c2faith.judging.judges.outcome import Outcome

RUNGS = ("json_schema", "json_object", "text")
CAPS = ("max_tokens", "max_completion_tokens")
LONGER = 4  # a reply that hit its cap is asked for once more with this many times the tokens
_RESPONSE_FORMAT = re.compile(r"response_?format|json_?schema|json_?object|structured output|guided|grammar", re.I)
_REFUSED = re.compile(
    r"unsupported|not support|does not support|unrecognized|unknown|unexpected|not permitted|not allowed|"
    r"extra (fields|inputs)|invalid (parameter|argument)|only the default",
    re.IGNORECASE,
)


class Dialect:
    """One model's accepted rung and parameters, learnt as calls are rejected.

    Parameters
    ----------
    model : str
    parameters : mapping
        Fields of the request's body, as asked for; what the judge's fingerprint is made from stays untouched.
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

    def adapt(self, outcome: Outcome, version: int) -> str:
        """Change what a rejection complains about; says what changed, or nothing if it is about something else.

        `version` is the dialect's when the call went out: if another call's rejection has changed it since, that
        was the change.
        """
        if version != self.version:
            return "changed meanwhile"
        change = self._adapt(outcome)
        self.version += bool(change)
        return change

    def _adapt(self, outcome: Outcome) -> str:
        words = f"{outcome.param} {outcome.code} {outcome.message}"
        if self.rung != RUNGS[-1] and _RESPONSE_FORMAT.search(words):
            before, self.rung = self.rung, RUNGS[RUNGS.index(self.rung) + 1]
            return f"{before} is not available, {self.rung} is used"
        if not _REFUSED.search(f"{outcome.code} {outcome.message}"):
            return ""
        if outcome.param:
            return self._drop(outcome.param) if outcome.param in self.parameters else ""
        named = {name: re.search(rf"\b{name}\b", outcome.message) for name in self.parameters}
        found = sorted((match.start(), name) for name, match in named.items() if match)
        return self._drop(found[0][1]) if found else ""

    def _drop(self, name: str) -> str:
        value = self.parameters.pop(name)
        other = {CAPS[0]: CAPS[1], CAPS[1]: CAPS[0]}.get(name)
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
