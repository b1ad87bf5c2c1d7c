"""A run's judging from end to end: what a judge has not answered is forecast, asked and journaled.

The same command resumes: finished items are never asked again, pending ones are, and tokens and cost add up.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from c2faith import dataset
from c2faith.judging import judges, replies, tasks
from c2faith.judging.judges import pricing
from c2faith.judging.judges.base import Judge, Query
from c2faith.progress import Progress
from c2faith.records import InputError, sha256


@dataclass
class Tally:
    """What a judge's run on one task has taken so far, over all resumes."""

    items: int
    finished: int = 0
    calls: int = 0
    errors: int = 0
    dollars: float = 0.0
    usage: Counter[str] = field(default_factory=Counter)

    @property
    def pending(self) -> int:
        return self.items - self.finished


def ask_run(
    run: str,
    name: str,
    asked: Sequence[str] = (),
    *,
    part: str = "",
    max_cost: float | None = None,
    batch: bool = False,
    announce: Callable[[str], None] = print,
    **edge: Any,
) -> dict[str, Tally]:
    """Ask one judge everything of a run that it has not answered; a tally by task.

    `name` and `edge` are as for `judges.make`; `asked` are tasks, the judge's own if empty; `part` is a shard such
    as ``3/8``; `max_cost` are dollars over all tasks and resumes. `announce` takes what is to be known beforehand:
    items that cannot be asked, the forecast of what costs money.
    """
    if max_cost is not None and not 0 <= max_cost < math.inf:
        raise InputError(f"MAX_COST={max_cost}: give dollars, 0 or more")
    folders = replies.folders(run)
    judge = judges.make(name, batch=folders[1] if batch else None, **edge)
    asked = tuple(asked or judge.tasks)
    _refuse_unanswered(judge, asked)
    rows, recorded, tallies, pending = dataset.of_run(run), {}, {}, []
    queries: dict[str, list[Query]] = {}
    for task in asked:
        if line := tasks.left_out(rows, task):
            announce(line)
        whole = [item.query(judge.fingerprint) for item in tasks.items(rows, task)]
        frozen, live = (replies.journal_path(folder, judge.judge_id, task) for folder in folders)
        kept, left = _standing(judge, frozen, whole)
        queries[task], recorded[task] = shard(left, part), kept.finished
        tallies[task], missing = _standing(judge, live, queries[task])
        pending += missing
    if hasattr(judge, "prices"):
        announce(f"{judge.judge_id}: {pricing.forecast(pending, judge.model, judge.prices, batch=batch).line()}")
    # Batches take hours: those of all tasks are submitted before the first is waited for.
    unfinished = [task for task, tally in tallies.items() if tally.pending]
    for group in [unfinished] if batch and unfinished else [[task] for task in unfinished]:
        elsewhere = sum(tally.dollars for task, tally in tallies.items() if task not in group)
        limit = None if max_cost is None else max_cost - elsewhere
        tallies |= ask(judge, [query for task in group for query in queries[task]], folders[1], max_cost=limit)
    for task, count in recorded.items():
        tallies[task].items += count
        tallies[task].finished += count
    return tallies


def ask(judge: Judge, queries: Sequence[Query], folder: Path, *, max_cost: float | None = None) -> dict[str, Tally]:
    """Ask a judge the queries of one task or several that are not finished in a run's folder; a tally by task.

    `max_cost` are dollars over all resumes of these tasks; the judge stops before they are passed. An `InputError`
    if the judge was recorded with other parameters, a journal is held by another process, the disk is full, or the
    endpoint refuses for good (wrong key, no quota, no such model).
    """
    replies.pin(judge, folder)
    asked: dict[Path, list[Query]] = {}
    for query in queries:
        asked.setdefault(replies.journal_path(folder, judge.judge_id, query.task), []).append(query)
    return {path.stem: tally for path, tally in ask_into(judge, asked, max_cost=max_cost).items()}


def ask_into(
    judge: Judge, asked: Mapping[Path, Sequence[Query]], *, max_cost: float | None = None
) -> dict[Path, Tally]:
    """As `ask`, into journals of any place, one a task; nothing is pinned."""
    with ExitStack() as stack:
        books = {path: stack.enter_context(replies.Journal(path)) for path in asked}
        before = {path: _standing(judge, path, queries) for path, queries in asked.items()}
        place = {query.task: books[path] for path, (_, left) in before.items() for query in left}
        pending = [query for _, left in before.values() for query in left]
        paid = sum(tally.dollars for tally, _ in before.values())
        if pending and max_cost is not None:
            if not hasattr(judge, "limit_spending"):
                raise InputError(f"MAX_COST={max_cost}: judge {judge.judge_id} has no prices to count with")
            judge.limit_spending(max_cost - paid)
        label, total = f"{judge.judge_id} {'+'.join(path.stem for path in asked)}", sum(map(len, asked.values()))
        done = total - len(pending)
        with Progress(label, total, done, status=getattr(judge, "status", str)) as progress:
            progress.dollars = paid
            for query, reply in judge.replies(pending) if pending else ():
                row = place[query.task].append(query, reply)
                paid += _price(judge, row)
                if replies.is_final(row):
                    progress.advance(paid)
        return {path: _standing(judge, path, queries)[0] for path, queries in asked.items()}


def _refuse_unanswered(judge: Judge, asked: Sequence[str]) -> None:
    known = getattr(judge, "answers", None)
    for task in asked:
        if tasks.get(task).name not in (known or asked):
            whole = [name for name in known if tasks.get(name).ablates not in known]
            raise InputError(f"judge {judge.judge_id}: {judge.kind} answers {', '.join(whole)}, not {task}")


def shard(queries: Sequence[Query], part: str) -> list[Query]:
    """The queries of one part of a run, ``k/n`` with 1 ≤ k ≤ n; all if empty.

    An item's part depends on its id alone; the journals of disjoint parts merge by concatenation.
    """
    if not part:
        return list(queries)
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", part)
    k, n = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= k <= n:
        raise InputError(f"SHARD={part}: a shard is k/n with k from 1 to n, e.g. 3/8")
    return [query for query in queries if int(sha256(query.item_id)[:16], 16) % n == k - 1]


def _price(judge: Judge, row: Mapping[str, Any]) -> float:
    return judge.price(row.get("usage") or {}) if hasattr(judge, "price") else 0.0


def _standing(judge: Judge, path: Path, queries: Sequence[Query]) -> tuple[Tally, list[Query]]:
    tally, settled = Tally(items=len(queries)), set()
    for row in replies.read(path):
        tally.calls += 1
        tally.errors += row.get("error") == "api_error"
        tally.dollars += _price(judge, row)
        tally.usage.update(row.get("usage") or {})
        if replies.is_final(row):
            settled.add(replies.key(row))
    left = [query for query in queries if query.key not in settled]
    tally.finished = len(queries) - len(left)
    return tally, left
