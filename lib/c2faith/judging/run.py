"""A run's judging from end to end: what is missing is forecast, asked and journaled; the rest is left alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from c2faith import dataset, paths
from c2faith.judging import ask as judging
from c2faith.judging import judges
from c2faith.judging import replies as journal
from c2faith.judging.judges import pricing
from c2faith.judging.judges.base import Judge, Query
from c2faith.judging.judges.sharding import shard
from c2faith.judging.tasks import plan
from c2faith.records import InputError, Task


def missing_queries(
    rows: dataset.Dataset, run: str, judge_id: str, fingerprint: str, task: Task
) -> tuple[list[Query], int]:
    """(planned queries that no recorded reply settles, how many recorded replies settle the others).

    What the live journal holds is not looked at here: resuming is the journal's own business.
    """
    queries = [item.query(fingerprint) for item in plan(rows, task)]
    settled = _settled(run, judge_id, task, frozen=True)
    left = [query for query in queries if (query.item_id, query.prompt_sha256) not in settled]
    return left, len(queries) - len(left)


def judge_run(
    run: str,
    name: str,
    tasks: Sequence[Task] = (),
    *,
    part: str = "",
    max_cost: float | None = None,
    batch: bool = False,
    announce: Callable[[str], None] = print,
    **edge: Any,
) -> dict[Task, judging.Tally]:
    """Ask one judge everything of a run that it has not answered.

    Parameters
    ----------
    run, name : str
        The run and the judge (see `judges.make`).
    tasks : sequence of str
        Those of the judge if empty.
    part : str
        A shard such as ``3/8``: only its items are asked.
    max_cost : float, optional
        Dollars over all tasks and resumes.
    batch : bool
        Through the provider's Batch API.
    announce : callable
        Takes what is to be known beforehand: items that cannot be asked, the forecast of what costs money.
    **edge
        Endpoint, connections and the like, for `judges.make`.

    Returns
    -------
    dict of task to Tally
    """
    if max_cost is not None and not 0 <= max_cost < math.inf:
        raise InputError(f"MAX_COST={max_cost}: give dollars, 0 or more")
    judge = judges.make(name, batch=paths.run_dir(run) if batch else None, **edge)
    rows = dataset.of_run(run)
    asked: dict[Task, tuple[list[Query], int]] = {}
    for task in tasks or judge.tasks:
        queries, recorded = missing_queries(rows, run, judge.judge_id, judge.fingerprint, task)
        asked[task] = shard(queries, part), recorded
        if task == "shuffled":
            n_short = len(plan(rows, "detection")) - len(queries) - recorded
            announce(f"shuffled: {n_short} items have fewer than two steps to shuffle and are not asked")
    if hasattr(judge, "prices"):
        announce(f"{judge.judge_id}: {_forecast(run, judge, asked, batch).line()}")
    folder = paths.run_dir(run)
    paid = {task: judging.dollars(judge, folder, task) for task in asked}
    # Batches take hours: those of all tasks are submitted before the first is waited for.
    groups = [list(asked)] if batch else [[task] for task in asked]
    tallies: dict[Task, judging.Tally] = {}
    for group in groups:
        elsewhere = sum(dollars for task, dollars in paid.items() if task not in group)
        left = None if max_cost is None else max_cost - elsewhere
        tallies |= judging.judge_tasks(judge, {task: asked[task][0] for task in group}, folder, max_cost=left)
        paid |= {task: tallies[task].dollars for task in group}
    for task, (_, recorded) in asked.items():
        tallies[task].items += recorded
        tallies[task].finished += recorded
    return tallies


def _settled(run: str, judge_id: str, task: Task, *, frozen: bool) -> set[journal.Key]:
    folder = paths.frozen_dir(run) if frozen else paths.run_dir(run)
    known = journal.latest(judging.reply_path(folder, judge_id, task))
    return {key for key, row in known.items() if journal.is_final(row)}


def _forecast(run: str, judge: Judge, asked: dict[Task, tuple[list[Query], int]], batch: bool) -> pricing.Forecast:
    pending = [
        query
        for task, (queries, _) in asked.items()
        for settled in [_settled(run, judge.judge_id, task, frozen=False)]
        for query in queries
        if (query.item_id, query.prompt_sha256) not in settled
    ]
    return pricing.forecast(pending, judge.model, judge.prices, batch=batch)
