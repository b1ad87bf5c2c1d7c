"""Everything the item explorer shows, as one compact value: items, texts, verdicts and their grades, formulas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from c2faith.analysis.figures.style import COLOURS
from c2faith.analysis.report import mathml
from c2faith.dataset import Dataset
from c2faith.judging import tasks
from c2faith.judging.tasks import TASKS, Item

RIGHT = ("caught", "accepted", "exact", "as the reference")
WRONG = ("missed", "false alarm", "one step off", "elsewhere", "too high", "too low")
OPEN = ("no reference", "no answer")
_TOLERANCE = 0.5


def reported() -> list[str]:
    """The tasks that a report is about: those that are measured, without the ablations."""
    return [name for name, row in TASKS.items() if row.metric and not row.ablates]


def grade(row: Mapping[str, Any]) -> str:
    """What one row of a verdict frame amounts to: a word from `RIGHT`, `WRONG` or `OPEN`.

    Where the truth is a reference, a score agrees with it if it is at most half a point away.

    >>> grade({"task": "localization", "value": 4.0, "target": 3})
    'one step off'
    """
    task, value = TASKS[row["task"]], row["value"]
    if np.isnan(value):
        return "no answer"
    if task.metric not in ("detection", "localization"):
        error = value - row.get(task.truth, np.nan)
        if np.isnan(error):
            return "no reference"
        return "as the reference" if abs(error) <= _TOLERANCE else "too high" if error > 0 else "too low"
    faulty = row["truth"] == 0 if task.metric == "detection" else row["target"] >= 0
    flagged = value == 0 if task.metric == "detection" else value >= 0
    if not (faulty and flagged):
        return {(True, False): "missed", (False, True): "false alarm", (False, False): "accepted"}[faulty, flagged]
    if task.metric == "detection":
        return "caught"
    error = abs(value - row["target"])
    return "exact" if error == 0 else "one step off" if error == 1 else "elsewhere"


def payload(verdicts: Mapping[str, pd.DataFrame], dataset: Dataset) -> dict[str, Any]:
    """The explorer's content as plain JSON values.

    Returns
    -------
    dict
        ``judges`` (id, colour), ``texts`` (each once; everything else refers to their numbers), ``formulas``
        (LaTeX → MathML), ``math`` (the pattern that finds LaTeX in a text) and ``items``. Of an item:
        ``task``, ``id``, ``kind``, ``question``, ``steps``, ``target`` (−1: none), ``was`` (the original of a
        perturbed step), ``removed`` (indices into ``steps``, which are all of the chain's), ``facts`` (words
        for its badges), ``edit``, and ``verdicts``, one for each judge: null if it was not asked, else value,
        grade, status, confidence, reasoning.
    """
    shown = {task: verdicts[task] for task in reported() if task in verdicts}
    judges = sorted({judge for frame in shown.values() for judge in frame["judge_id"]})
    texts: dict[str, int] = {}
    made = [entry for task, frame in shown.items() for entry in _entries(task, frame, judges, dataset, texts)]
    return {
        "judges": [{"id": name, "colour": COLOURS[i % len(COLOURS)]} for i, name in enumerate(judges)],
        "math": mathml.PATTERN,
        "formulas": mathml.formulas(texts),
        "texts": list(texts),
        "items": made,
    }


def _number(text: str, texts: dict[str, int]) -> int:
    """A text's number, each kept once: steps recur across items, and some judges always say the same."""
    return texts.setdefault(text, len(texts))


def _entries(
    task: str, frame: pd.DataFrame, judges: list[str], dataset: Dataset, texts: dict[str, int]
) -> Iterator[dict[str, Any]]:
    chains = {chain.chain_id: chain for chain in dataset.chains}
    causality = {row.item_id: row for row in dataset.causality}
    keys = frame[["item_id", "judge_id"]].itertuples(index=False, name=None)
    rows = dict(zip(keys, frame.to_dict("records"), strict=True))
    for item in tasks.items(dataset, task):
        asked = [rows.get((item.item_id, judge)) for judge in judges]
        known = next((row for row in asked if row is not None), None)
        if known is None:
            continue
        whole, made = chains[item.chain_id].steps if item.removed else item.steps, causality.get(item.item_id)
        entry = {
            "task": task,
            "id": item.item_id,
            "kind": item.kind,
            "question": _number(item.question, texts),
            "steps": [_number(step, texts) for step in whole],
            "target": int(known.get("target", -1)),
            "facts": list(_facts(item, known, made)),
            "verdicts": [None if row is None else _verdict(row, texts) for row in asked],
        }
        if made is not None:
            entry |= {"was": _number(made.original_step, texts), "edit": made.edit_type}
        if item.removed:
            entry["removed"] = list(item.removed)
        yield entry


def _facts(item: Item, row: Mapping[str, Any], made: Any) -> Iterable[str]:
    """Short facts about an item, in words."""
    if made is not None:
        yield from (made.edit_type.replace("_", " "), f"similarity {made.similarity:.2f}", f"by {made.negator}")
    elif item.kind == "natural":
        yield "no error" if row["target"] < 0 else f"first wrong step: {row['target']:.0f}"
    if "deletion_rate" in row:
        realized, asked = f"{row['realized_rate']:.0%}", f"{row['deletion_rate']:.0%}"
        yield f"{len(item.removed)} steps removed: {realized} of the middle, {asked} asked for"
    if "reference" in row:
        yield "no reference" if np.isnan(row["reference"]) else f"reference {row['reference']:.3g}"


def _verdict(row: Mapping[str, Any], texts: dict[str, int]) -> list[Any]:
    value, confidence = row["value"], row["confidence"]
    return [
        None if np.isnan(value) else int(value),
        grade(row),
        row["status"],
        None if np.isnan(confidence) else round(float(confidence), 3),
        _number(row["reasoning"], texts),
    ]
