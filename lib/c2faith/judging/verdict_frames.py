"""Replies → verdict frames: one row per planned item and judge, the input of every metric, table and figure.

A frame has the columns judge_id, task, item_id, chain_id, problem_id, kind, n_steps, value, status, confidence,
reasoning and the item's labels (detection and its ablations: target, truth; localization: target; coverage:
deletion_rate, realized_rate, realized_chain_rate, n_removed, reference). Unanswered items have value NaN and a
status that says why; items without any reply have status ``pending``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from c2faith import dataset, paths
from c2faith.judging import ask as judging
from c2faith.judging import references, verdicts
from c2faith.judging import replies as journal
from c2faith.judging.tasks import Item, plan
from c2faith.records import ABLATIONS, InputError, Task

SCORED: tuple[Task, ...] = ("detection", "localization", "coverage")


def folders(run: str) -> list[Path]:
    """Where a run's replies lie: the recorded ones first, then the live ones."""
    return [paths.frozen_dir(run), paths.run_dir(run)]


def recorded_judges(run: str, task: Task) -> list[str]:
    """Sorted ids of the judges with a journal of this task."""
    found = {path.parent.name for folder in folders(run) for path in folder.glob(f"replies/*/{task}.jsonl")}
    return sorted(found)


def replies(run: str, judge_id: str, task: Task) -> list[dict[str, Any]]:
    """All journal rows of a judge and task, recorded then live; what stands in both counts once."""
    recorded, live = (list(journal.read(judging.reply_path(f, judge_id, task))) for f in folders(run))
    known = {_attempt(row) for row in recorded}
    return recorded + [row for row in live if _attempt(row) not in known]


def _attempt(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["item_id"], row["prompt_sha256"], row.get("attempt"), row.get("at")


def fingerprint(run: str, judge_id: str) -> str:
    """The fingerprint under which a judge's replies were recorded."""
    for folder in folders(run):
        if (folder / "replies" / judge_id / "judge.json").exists():
            return judging.read_pin(folder / "replies" / judge_id)["fingerprint"]
    raise InputError(f"judge {judge_id} has no replies in run {run}: run `make judge RUN={run} JUDGE={judge_id}`")


def verdict_frame(
    items: Sequence[Item], rows: Iterable[Mapping[str, Any]], judge_id: str, fingerprint: str
) -> pd.DataFrame:
    """One row per item: the verdict of its last final reply, or why there is none.

    Parameters
    ----------
    items : sequence of Item
        The plan of one task.
    rows : iterable of mapping
        Journal rows, oldest first; rows under another key (another prompt or judge) are not used.
    judge_id, fingerprint : str

    Returns
    -------
    DataFrame
        ``attrs["stale"]`` counts rows of planned items under another key.
    """
    final: dict[journal.Key, Mapping[str, Any]] = {}
    for row in rows:
        key = (row["item_id"], row["prompt_sha256"])
        if key not in final or journal.is_final(row) or not journal.is_final(final[key]):
            final[key] = row
    records, used = [], 0
    for item in items:
        query = item.query(fingerprint)
        row = final.get((item.item_id, query.prompt_sha256))
        used += row is not None
        records.append(_record(item, row, judge_id))
    frame = pd.DataFrame.from_records(records)
    frame["value"] = frame["value"].astype(float)
    frame.attrs["stale"] = len(final) - used
    return frame


def load_frames(
    run: str,
    judges: Sequence[str] = (),
    *,
    reference: str = "annotated",
    tasks: Sequence[Task] = (*SCORED, *ABLATIONS),
) -> dict[Task, pd.DataFrame]:
    """Verdict frames of a run, by task.

    Parameters
    ----------
    run : str
    judges : sequence of str
        Judge ids; all that have replies if empty. A judge is in a task's frame if it has a journal of it.
    reference : str
        What coverage is compared with: ``annotated``, ``retention``, or the id of a judge that answered the
        reference task.
    tasks : sequence of str
        Those without any replies are left out, as the ablations mostly are: no judge is asked them by default.

    Raises
    ------
    InputError
        For a judge without replies, an unknown reference, or no replies at all.
    """
    rows = dataset.of_run(run)
    frames = {}
    for task in tasks:
        known = recorded_judges(run, task)
        missing = [judge for judge in judges if not any(judge in recorded_judges(run, t) for t in SCORED)]
        if missing:
            raise InputError(
                f"judge {missing[0]} has no replies in run {run}; there are: {', '.join(known) or 'none'}"
            )
        items = plan(rows, task)
        chosen = [judge for judge in known if judge in judges or not judges]
        if not chosen:
            continue
        parts = [verdict_frame(items, replies(run, j, task), j, fingerprint(run, j)) for j in chosen]
        frame = pd.concat(parts, ignore_index=True)
        if task == "coverage":
            frame["reference"] = frame["item_id"].map(_references(run, rows, reference))
        frames[task] = frame
    if not frames:
        raise InputError(f"run {run} has no replies; run `make judge RUN={run} JUDGE=...` first")
    return frames


def _record(item: Item, row: Mapping[str, Any] | None, judge_id: str) -> dict[str, Any]:
    record = {
        "judge_id": judge_id,
        "task": item.task,
        "item_id": item.item_id,
        "chain_id": item.chain_id,
        "problem_id": item.problem_id,
        "kind": item.kind,
        "n_steps": item.n_steps,
        **item.labels,
        "value": None,
        "status": "pending",
        "confidence": float("nan"),
        "reasoning": "",
    }
    if row is not None:
        verdict = verdicts.read_reply(row, item.task, item.n_steps)
        record |= {"value": verdict.value, "status": verdict.status, "reasoning": verdict.reasoning}
        if verdict.status == "ok" and row.get("scores"):
            record["confidence"] = _confidence(item.task, row["scores"])
    return record


def _confidence(task: Task, scores: Sequence[float]) -> float:
    """P(does not follow), P(some step is broken), or the probability of the score given."""
    if task == "detection" or task in ABLATIONS:
        return scores[0]
    return 1 - scores[-1] if task == "localization" else max(scores)


def _references(run: str, rows: dataset.Dataset, reference: str) -> dict[str, float]:
    chains = {chain.chain_id: chain for chain in rows.chains}
    label_free = {"annotated": references.annotated, "retention": references.retention}
    if score := label_free.get(reference):
        return {row.item_id: score(chains[row.chain_id], row.removed) for row in rows.coverage}
    if reference not in recorded_judges(run, "reference"):
        choices = ", ".join([*label_free, *recorded_judges(run, "reference")])
        raise InputError(f"unknown reference {reference!r} in run {run}: choose from {choices}")
    frame = verdict_frame(
        plan(rows, "reference"),
        replies(run, reference, "reference"),
        reference,
        fingerprint(run, reference),
    )
    return dict(zip(frame["item_id"], frame["value"], strict=True))
