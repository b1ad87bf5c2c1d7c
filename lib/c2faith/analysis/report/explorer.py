"""Everything the item explorer shows, as one compact value: items, texts, verdicts, formulas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from c2faith.analysis import figures
from c2faith.analysis.report import mathml
from c2faith.analysis.report.outcomes import outcome
from c2faith.dataset import Dataset
from c2faith.judging import tasks as judging_tasks
from c2faith.judging.tasks import Item

TASKS = ("detection", "localization", "coverage")


class Texts:
    """Texts by number, each kept once: steps recur across items, and some judges always say the same."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def add(self, text: str) -> int:
        """The number of a text."""
        return self.numbers.setdefault(text, len(self.numbers))

    def add_all(self, texts: Iterable[str]) -> list[int]:
        """The numbers of several."""
        return [self.add(text) for text in texts]


def payload(frames: Mapping[str, pd.DataFrame], items: Dataset) -> dict[str, Any]:
    """The explorer's content as plain JSON values.

    Parameters
    ----------
    frames : mapping
        Verdict frames by task.
    items : Dataset
        The run's chains and items.

    Returns
    -------
    dict
        ``judges`` (id, colour), ``texts`` (each once; everything else refers to their numbers), ``formulas``
        (LaTeX → MathML), ``math`` (the pattern that finds LaTeX in a text) and ``items``. Of an item:
        ``task``, ``id``, ``kind``, ``question``, ``steps``, ``target`` (−1: none), ``was`` (the original of a
        perturbed step), ``removed`` (indices into ``steps``, which are all of the chain's), ``facts`` (words
        for its badges), ``edit``, and ``verdicts``, one for each judge: null if it was not asked, else value,
        outcome, status, confidence, reasoning.
    """
    tasks = {task: frames[task] for task in TASKS if task in frames}
    judges = figures.looks(pd.concat(tasks.values())["judge_id"])
    texts = Texts()
    made = [entry for task, frame in tasks.items() for entry in _entries(task, frame, list(judges), items, texts)]
    return {
        "judges": [{"id": name, "colour": look.colour} for name, look in judges.items()],
        "math": mathml.PATTERN,
        "formulas": mathml.formulas(texts.numbers),
        "texts": list(texts.numbers),
        "items": made,
    }


def _entries(
    task: str, frame: pd.DataFrame, judges: list[str], items: Dataset, texts: Texts
) -> Iterable[dict[str, Any]]:
    chains = {chain.chain_id: chain for chain in items.chains}
    causality = {row.item_id: row for row in items.causality}
    keys = frame[["item_id", "judge_id"]].itertuples(index=False, name=None)
    rows = dict(zip(keys, frame.to_dict("records"), strict=True))
    for item in judging_tasks.items(items, task):
        asked = [rows.get((item.item_id, judge)) for judge in judges]
        known = next((row for row in asked if row is not None), None)
        if known is None:
            continue
        whole = chains[item.chain_id].steps if task == "coverage" else item.steps
        entry = {
            "task": task,
            "id": item.item_id,
            "kind": item.kind,
            "question": texts.add(item.question),
            "steps": texts.add_all(whole),
            "target": int(known["target"]) if task != "coverage" else -1,
            "facts": _facts(item, known, causality.get(item.item_id)),
            "verdicts": [None if row is None else _verdict(row, texts) for row in asked],
        }
        if item.item_id in causality:
            entry |= {"was": texts.add(causality[item.item_id].original_step)}
            entry |= {"edit": causality[item.item_id].edit_type}
        if item.removed:
            entry["removed"] = list(item.removed)
        yield entry


def _facts(item: Item, row: Mapping[str, Any], made: Any) -> list[str]:
    """Short facts about an item, in words."""
    if made is not None:
        return [made.edit_type.replace("_", " "), f"similarity {made.similarity:.2f}", f"by {made.negator}"]
    if item.task == "coverage":
        reference = row["reference"]
        realized, asked = f"{row['realized_rate']:.0%}", f"{row['deletion_rate']:.0%}"
        removed = f"{len(item.removed)} steps removed: {realized} of the middle, {asked} asked for"
        return [removed, "no reference" if np.isnan(reference) else f"reference {reference:.3g}"]
    if item.kind == "natural":
        return ["no error" if row["target"] < 0 else f"first wrong step: {row['target']:.0f}"]
    return []


def _verdict(row: Mapping[str, Any], texts: Texts) -> list[Any]:
    value, confidence = row["value"], row["confidence"]
    return [
        None if np.isnan(value) else int(value),
        outcome(row),
        row["status"],
        None if np.isnan(confidence) else round(float(confidence), 3),
        texts.add(row["reasoning"]),
    ]
