"""Chains from any JSON lines file of ``{question, steps[, labels, answer]}``.

`labels` rate the steps as PRM800K does (1, 0, −1; true and false will do): where they are given, a chain counts
only if every step is rated 1. Without them every chain is taken to be right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, StringConstraints, ValidationError

from c2faith.dataset.sources.base import Dropped, Request, chain, json_lines, local_file
from c2faith.records import Chain, InputError

_Text = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, min_length=1)]


class _Record(BaseModel):
    question: _Text
    steps: list[_Text]
    labels: list[bool | int | None] | None = None
    answer: str | int | float | None = None


def inputs(path: str | None) -> dict[str, Path]:
    """The one file at `path`."""
    return local_file(path, "jsonl")


def read(files: Mapping[str, Path], request: Request, dropped: Dropped) -> Iterator[Chain]:
    """The chains whose labels, if any, are all 1."""
    for path in files.values():
        for number, value in json_lines(path):
            dropped.read += 1
            record = _validated(value, f"{path}, line {number}")
            if record.labels is not None and any(label != 1 for label in record.labels):
                dropped.chains["step not labelled 1"] += 1
            elif len(record.steps) < request.min_steps:
                dropped.chains["too few steps"] += 1
            else:
                answer = None if record.answer is None else str(record.answer)
                yield chain("jsonl", record.question, record.steps, answer=answer)


def _validated(value: Any, where: str) -> _Record:
    try:
        record = _Record.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the line"
        raise InputError(
            f"{where}: {field}: {first['msg']}; a line is {{question, steps[, labels, answer]}}"
        ) from None
    if record.labels is not None and len(record.labels) != len(record.steps):
        raise InputError(f"{where}: {len(record.labels)} labels for {len(record.steps)} steps; give one a step")
    return record
