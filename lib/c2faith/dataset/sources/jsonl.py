"""Chains from any JSON lines file of ``{question, steps[, labels, answer]}``.

`labels` rate the steps as PRM800K does (1, 0, −1; true and false will do): where they are given, a chain counts
only if every step is rated 1. Without them every chain is taken to be right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, StringConstraints

from c2faith.dataset.chains import Dropped, Request, chain, json_lines, kept, leave_out
from c2faith.records import Chain, InputError, validated

_Text = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, min_length=1)]


class _Record(BaseModel):
    question: _Text
    steps: list[_Text]
    labels: list[bool | int | None] | None = None
    answer: str | int | float | None = None


def inputs(path: str | None) -> dict[str, Path]:
    """The one file at `path`."""
    if not path:
        raise InputError("SOURCE=jsonl: needs a path, the JSON lines file to read (SOURCE_PATH=…)")
    if not Path(path).is_file():
        what = "is a folder" if Path(path).is_dir() else "no such file"
        raise InputError(f"{path}: {what}; give a JSON lines file")
    return {Path(path).name: Path(path)}


def read(files: Mapping[str, Path], request: Request, dropped: Dropped) -> Iterator[Chain]:
    """The chains whose labels, if any, are all 1."""
    for path in files.values():
        for number, value in json_lines(path):
            dropped.read += 1
            where = f"{path}, line {number}"
            record = validated(value, _Record, where, "; a line is {question, steps[, labels, answer]}")
            if record.labels is not None and len(record.labels) != len(record.steps):
                n_labels, n_steps = len(record.labels), len(record.steps)
                raise InputError(f"{where}: {n_labels} labels for {n_steps} steps; give one a step")
            yield from kept(dropped.chains, _perfect, record, request)


def _perfect(record: _Record, request: Request) -> Chain:
    leave_out(record.labels is not None and any(label != 1 for label in record.labels), "step not labelled 1")
    leave_out(len(record.steps) < request.min_steps, "too few steps")
    answer = None if record.answer is None else str(record.answer)
    return chain("jsonl", record.question, record.steps, answer=answer)
