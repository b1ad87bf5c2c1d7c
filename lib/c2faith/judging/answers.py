"""What an answer is: the JSON schema that judges are sent, and what is read back.

What is asked for is strict; what is read is a little wider, and here alone it is said how much: other keys are
ignored, `reasoning` may be missing, and a value may be an integral float or a string such as ``Step 3``.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationInfo

_INTEGRAL = re.compile(r"\s*(?:step\s*)?([-−]?\d{1,9})(?:\.0+)?\s*", re.IGNORECASE)


def integral(value: Any) -> int | None:
    """The integer that a JSON value stands for, or None.

    >>> [integral(value) for value in (3, 3.0, "Step 3", "−1", 2.5, "two", True, None)]
    [3, 3, 3, -1, None, None, None, None]
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    match = _INTEGRAL.fullmatch(value) if isinstance(value, str) else None
    return int(match[1].replace("−", "-")) if match else None


def text(value: Any) -> str:
    """A reasoning as text, whatever JSON it came as; half a surrogate pair, which no file can hold, is replaced.

    >>> text("half \\ud800 pair"), text(["a", 1])
    ('half � pair', '["a", 1]')
    """
    said = value if isinstance(value, str) else json.dumps(value)
    return said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _a_step(index: int, info: ValidationInfo) -> int:
    if not -1 <= index < info.context:
        raise ValueError(f"no step {index}")
    return index


_Integral = BeforeValidator(integral)


class Answer(BaseModel):
    """Any task's answer: reasoning, then the value."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_serialization_defaults_required=True)

    reasoning: Annotated[str, PlainValidator(text)] = Field(default_factory=str)


# The classes below have comments, no docstrings: a docstring would become part of the schema that is sent.
class Detection(Answer):
    # 1: the step follows from those before it; 0: it does not.
    score: Annotated[Literal[0, 1], _Integral]


class Localization(Answer):
    # The first step that does not follow; −1: none. How many there are is the validation's context.
    index: Annotated[int, _Integral, AfterValidator(_a_step)]


class Coverage(Answer):
    # How complete the reasoning is.
    score: Annotated[Literal[0, 1, 2, 3, 4], _Integral]


@cache
def key(kind: type[Answer]) -> str:
    """The name of a model's value."""
    return next(name for name in kind.model_fields if name != "reasoning")


def admissible(kind: type[Answer], n_steps: int) -> range:
    """The values a verdict may take, in ascending order.

    >>> admissible(Localization, 3), admissible(Coverage, 3)
    (range(-1, 3), range(0, 5))
    """
    if kind is Localization:
        return range(-1, n_steps)  # what `_a_step` lets pass
    values = schema(kind)["properties"][key(kind)]["enum"]
    return range(values[0], values[-1] + 1)


@cache
def schema(kind: type[Answer], n_steps: int | None = None) -> dict[str, Any]:
    """A model's JSON schema, as OpenAI's strict mode wants it: all keys required, no others, nothing but types.

    Without `n_steps` an index has no bounds: one schema serves chains of every length.
    """
    whole = kind.model_json_schema(mode="serialization")
    properties = {
        name: {word: value for word, value in field.items() if word != "title"}
        for name, field in whole["properties"].items()
    }
    if n_steps is not None:
        properties[key(kind)]["enum"] = list(admissible(kind, n_steps))
    kept = ("type", "properties", "required", "additionalProperties")
    return {word: whole[word] for word in kept} | {"properties": properties}
