"""A run's judging from end to end: what is missing is forecast, asked and journaled; the rest is left alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from c2faith import dataset, journal, judges, judging, paths
from c2faith.judges.base import Query
from c2faith.plan import plan
from c2faith.records import Task


def missing_queries(run: str, judge_id: str, fingerprint: str, task: Task) -> tuple[list[Query], int]:
    """(all planned queries that no recorded reply settles, how many recorded ones are settled).

    What the live journal holds is not looked at here: resuming is the journal's own business.
    """
    rows = dataset.read(paths.run_dir(run))
    queries = [item.query(fingerprint) for item in plan(rows, task)]
    recorded = journal.latest(judging.reply_path(paths.frozen_dir(run), judge_id, task))
    settled = {key for key, row in recorded.items() if journal.is_final(row)}
    left = [query for query in queries if (query.item_id, query.prompt_sha256) not in settled]
    return left, len(queries) - len(left)


def judge_run(
    run: str,
    name: str,
    tasks: Sequence[Task] = (),
    *,
    max_cost: float | None = None,
    **edge: Any,
) -> dict[Task, judging.Tally]:
    """Ask one judge everything of a run that it has not answered.

    Parameters
    ----------
    run, name : str
        The run and the judge (see `judges.make`).
    tasks : sequence of str
        Those of the judge if empty.
    max_cost : float, optional
        Dollars over all tasks and resumes.
    **edge
        Endpoint, connections and the like, for `judges.make`.

    Returns
    -------
    dict of task to Tally
    """
    judge = judges.make(name, **edge)
    tallies: dict[Task, judging.Tally] = {}
    spent = 0.0
    for task in tasks or judge.tasks:
        queries, recorded = missing_queries(run, judge.judge_id, judge.fingerprint, task)
        left = None if max_cost is None else max_cost - spent
        tally = judging.judge(judge, queries, paths.run_dir(run), max_cost=left)
        tally.items, tally.finished = tally.items + recorded, tally.finished + recorded
        tallies[task] = tally
        spent += tally.dollars
    return tallies
