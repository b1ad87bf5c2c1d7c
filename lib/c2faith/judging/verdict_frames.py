"""Replies → frames, the input of every metric, table and figure: one row a judge and item, with the item's truth.

A verdict frame has the columns judge_id, task, item_id, chain_id, problem_id, kind, n_steps, value, status,
confidence, reasoning and the item's labels. Unanswered items have value NaN and a status that says why; items
without any reply have status ``pending``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from c2faith import dataset
from c2faith.judging import replies, tasks, verdicts
from c2faith.judging.judges import is_api, pricing
from c2faith.judging.tasks import Item
from c2faith.records import Chain, InputError

_FULL = 4.0
_OF_ITEM = ("task", "item_id", "chain_id", "problem_id", "kind", "n_steps")


def verdict_frame(
    items: Sequence[Item], rows: Iterable[Mapping[str, Any]], judge_id: str, fingerprint: str
) -> pd.DataFrame:
    """One row per item of a task: the verdict of its last final reply, or why there is none.

    Journal rows under another key (another prompt or judge) are not used; ``attrs["stale"]`` counts their keys.
    """
    latest = replies.latest(rows)
    used = [latest.get(item.query(fingerprint).key) for item in items]
    frame = pd.DataFrame.from_records([_record(*pair, judge_id) for pair in zip(items, used, strict=True)])
    frame["value"] = frame["value"].astype(float)
    frame.attrs["stale"] = len(latest) - sum(row is not None for row in used)
    return frame


def load(
    run: str, judges: Sequence[str] = (), *, reference: str = "annotated", asked: Sequence[str] = ()
) -> dict[str, pd.DataFrame]:
    """Verdict frames of a run, by task; an `InputError` for a judge without replies, or if there are none at all.

    All `judges` that have replies and all tasks (`asked`) that are measured, if none are named; without replies a
    task has no frame, and a judge no rows. Coverage is compared with a `reference`: ``annotated``, ``retention``,
    or the id of a judge that answered the reference task.
    """
    rows = dataset.of_run(run)
    known = {task: replies.asked(run, task) for task in asked or tasks.scored()}
    whole = {judge for task, found in known.items() if not tasks.get(task).ablates for judge in found}
    if missing := [judge for judge in judges if judge not in whole]:
        there = ", ".join(sorted(whole)) or "none"
        raise InputError(f"judge {missing[0]} has no replies in run {run}; there are: {there}")
    frames = {}
    for task, found in known.items():
        parts = [_of_judge(run, rows, judge, task) for judge in found if judge in judges or not judges]
        if parts:
            frames[task] = pd.concat(parts, ignore_index=True)
            if source := tasks.get(task).reference_task:
                truth = _references(run, rows, reference, source)
                frames[task][tasks.get(task).truth] = frames[task]["item_id"].map(truth)
    if not frames:
        raise InputError(f"run {run} has no replies; run `make judge RUN={run} JUDGE=...` first")
    return frames


def spending(run: str, frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What the verdicts in `frames` took, as in `pricing.summary`, one row a judge and task.

    `dollars` is 0 for judges that run offline, NaN where an endpoint's prices are not recorded.
    """
    rows = []
    for task, frame in frames.items():
        for judge in pd.unique(frame["judge_id"]):
            config = replies.pinned(run, judge)
            prices = pricing.read_prices(judge, config.get("prices"))
            spent = pricing.summary(replies.of_run(run, judge, task), prices)
            if math.isnan(spent["dollars"]) and not is_api(config.get("provider", "local")):
                spent["dollars"] = 0.0
            rows.append({"judge_id": judge, "task": task, **spent})
    return pd.DataFrame(rows)


def annotated(chain: Chain, removed: Collection[int]) -> float:
    """4 × the share of the chain's concepts and hints that the remaining steps still carry.

    `removed` holds 0-based indices. In [0, 4], unrounded; NaN for a chain without annotation.

    >>> annotated(Chain("c", "p", "champ", "?", ("a", "b", "c"), None, ((0,), (0, 1), (2,))), [2])  # 4 × 2/3
    2.6666666666666665
    """
    carried = [set(ids) for ids in chain.concepts or ()]
    everything = set().union(*carried)
    if not everything:
        return math.nan
    kept = set().union(*(ids for index, ids in enumerate(carried) if index not in removed))
    return _FULL * len(kept) / len(everything)


def retention(chain: Chain, removed: Collection[int]) -> float:
    """4 × the share of steps kept, in [0, 4], unrounded."""
    return _FULL * (1 - len(set(removed)) / len(chain.steps))


# Coverage references that need no model: what is known of a chain by annotation or by construction.
_LABEL_FREE = {"annotated": annotated, "retention": retention}


def _of_judge(run: str, rows: dataset.Dataset, judge: str, task: str) -> pd.DataFrame:
    fingerprint = replies.pinned(run, judge)["fingerprint"]
    return verdict_frame(tasks.items(rows, task), replies.of_run(run, judge, task), judge, fingerprint)


def _record(item: Item, row: Mapping[str, Any] | None, judge_id: str) -> dict[str, Any]:
    record = {"judge_id": judge_id, **{name: getattr(item, name) for name in _OF_ITEM}, **item.labels}
    record |= {"value": None, "status": "pending", "confidence": math.nan, "reasoning": ""}
    if row is not None:
        verdict = verdicts.read_reply(row, item.task, item.n_steps)
        record |= {"value": verdict.value, "status": verdict.status, "reasoning": verdict.reasoning}
        if verdict.status == "ok" and row.get("scores"):
            record["confidence"] = tasks.get(item.task).confidence(row["scores"])
    return record


def _references(run: str, rows: dataset.Dataset, reference: str, task: str) -> dict[str, float]:
    if score := _LABEL_FREE.get(reference):
        chains = {chain.chain_id: chain for chain in rows.chains}
        return {row.item_id: score(chains[row.chain_id], row.removed) for row in rows.coverage}
    known = replies.asked(run, task)
    if reference not in known:
        choice = ", ".join([*_LABEL_FREE, *known])
        raise InputError(f"unknown reference {reference!r} in run {run}: choose from {choice}")
    frame = _of_judge(run, rows, reference, task)
    return dict(zip(frame["item_id"], frame["value"], strict=True))
