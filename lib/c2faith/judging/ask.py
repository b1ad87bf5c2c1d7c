"""A run's judging from end to end: what a judge has not answered is forecast, asked and journaled.

The same command resumes: finished items are never asked again, pending ones are, and tokens and cost add up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from c2faith import dataset, paths
from c2faith.judging import judges, replies, tasks
from c2faith.judging.judges import pricing
from c2faith.judging.judges.base import Judge, Query
from c2faith.progress import Progress
from c2faith.records import InputError, sha256


@dataclass
class Tally:
    """What a judge's run on one task has taken so far, over all resumes."""

    items: int = 0
    finished: int = 0
    calls: int = 0
    errors: int = 0
    dollars: float = 0.0
    usage: dict[str, int] = field(default_factory=dict)

    @property
    def pending(self) -> int:
        return self.items - self.finished

    def add(self, row: Mapping[str, Any], price: Callable[[Mapping[str, int]], float]) -> None:
        """Count one journal row's call; whether its item is finished by it is not looked at."""
        self.calls += 1
        self.errors += row.get("error") == "api_error"
        for name, count in (row.get("usage") or {}).items():
            self.usage[name] = self.usage.get(name, 0) + count
        self.dollars += price(row.get("usage") or {})


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

    Parameters
    ----------
    name
        The judge (see `judges.make`).
    asked
        Tasks; those of the judge if empty.
    part
        A shard such as ``3/8``: only its items are asked.
    max_cost
        Dollars over all tasks and resumes.
    batch
        Through the provider's Batch API.
    announce
        Takes what is to be known beforehand: items that cannot be asked, the forecast of what costs money.
    **edge
        Endpoint, connections and the like, for `judges.make`.
    """
    if max_cost is not None and not 0 <= max_cost < math.inf:
        raise InputError(f"MAX_COST={max_cost}: give dollars, 0 or more")
    folder = paths.run_dir(run)
    judge = judges.make(name, batch=folder if batch else None, **edge)
    asked = tuple(asked or judge.tasks)
    refuse_unanswered(judge, asked)
    rows = dataset.of_run(run)
    queries: dict[Path, list[Query]] = {}
    pending: list[Query] = []
    tallies: dict[Path, Tally] = {}
    recorded: dict[str, int] = {}
    for task in asked:
        if line := tasks.left_out(rows, task):
            announce(line)
        whole = [item.query(judge.fingerprint) for item in tasks.items(rows, task)]
        known = replies.settled(replies.journal_path(paths.frozen_dir(run), judge.judge_id, task))
        left = [query for query in whole if query.key not in known]
        recorded[task] = len(whole) - len(left)
        path = replies.journal_path(folder, judge.judge_id, task)
        queries[path] = shard(left, part)
        tallies[path], missing = _standing(judge, path, queries[path])
        pending += missing
    if hasattr(judge, "prices"):
        announce(f"{judge.judge_id}: {pricing.forecast(pending, judge.model, judge.prices, batch=batch).line()}")
    open_paths = [path for path, tally in tallies.items() if tally.pending]
    if open_paths:
        replies.pin(judge, folder)
    # Batches take hours: those of all tasks are submitted before the first is waited for.
    for group in [open_paths] if batch and open_paths else [[path] for path in open_paths]:
        elsewhere = sum(tally.dollars for path, tally in tallies.items() if path not in group)
        limit = None if max_cost is None else max_cost - elsewhere
        tallies |= ask_into(judge, {path: queries[path] for path in group}, max_cost=limit)
    for path, tally in tallies.items():
        tally.items += recorded[path.stem]
        tally.finished += recorded[path.stem]
    return {path.stem: tally for path, tally in tallies.items()}


def ask(judge: Judge, queries: Sequence[Query], folder: Path, *, max_cost: float | None = None) -> dict[str, Tally]:
    """Ask a judge the queries that are not finished in a run's folder; a tally by task.

    Parameters
    ----------
    queries
        All planned queries of one task or several.
    max_cost
        Dollars, over all resumes of these tasks; the judge stops before they are passed.

    Raises
    ------
    InputError
        If the judge was recorded with other parameters, a journal is held by another process, the disk is full, or
        the endpoint refuses for good (wrong key, no quota, no such model).
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
    price = getattr(judge, "price", _free)
    tallies: dict[Path, Tally] = {}
    books: dict[str, tuple[replies.Journal, Tally]] = {}
    pending: list[Query] = []
    with ExitStack() as stack:
        for path, queries in asked.items():
            book = stack.enter_context(replies.Journal(path))
            tallies[path], left = _standing(judge, path, queries)
            books |= dict.fromkeys((query.task for query in left), (book, tallies[path]))
            pending += left
        if not pending:
            return tallies
        paid = sum(tally.dollars for tally in tallies.values())
        if max_cost is not None:
            if not hasattr(judge, "limit_spending"):
                raise InputError(f"MAX_COST={max_cost}: judge {judge.judge_id} has no prices to count with")
            judge.limit_spending(max_cost - paid)
        total = sum(tally.items for tally in tallies.values())
        label = f"{judge.judge_id} {'+'.join(path.stem for path in asked)}"
        status = getattr(judge, "status", str)
        with Progress(label, total, total - len(pending), status=status) as progress:
            progress.dollars = paid
            for query, reply in judge.replies(pending):
                book, tally = books[query.task]
                row = book.append(query, reply)
                tally.add(row, price)
                if replies.is_final(row):
                    tally.finished += 1
                    progress.advance(sum(tally.dollars for tally in tallies.values()))
    return tallies


def refuse_unanswered(judge: Judge, asked: Sequence[str]) -> None:
    """An `InputError` if there is no such task, or the judge is of a kind that does not answer one of them."""
    known = getattr(judge, "answers", None)
    for task in asked:
        if tasks.get(task).name not in (known or asked):
            whole = [name for name in known if tasks.get(name).ablates not in known]
            raise InputError(f"judge {judge.judge_id}: {judge.kind} answers {', '.join(whole)}, not {task}")


def shard(queries: Sequence[Query], part: str) -> list[Query]:
    """The queries of one part of a run, ``k/n`` with 1 ≤ k ≤ n; all if empty.

    An item's part depends on its id alone, so it is the same on every machine and whatever else is asked; the
    journals of disjoint parts merge by concatenation.
    """
    if not part:
        return list(queries)
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", part)
    k, n = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= k <= n:
        raise InputError(f"SHARD={part}: a shard is k/n with k from 1 to n, e.g. 3/8")
    return [query for query in queries if int(sha256(query.item_id)[:16], 16) % n == k - 1]


def _standing(judge: Judge, path: Path, queries: Sequence[Query]) -> tuple[Tally, list[Query]]:
    """What a journal's calls have taken, and the queries that none of them settles."""
    price, tally, settled = getattr(judge, "price", _free), Tally(items=len(queries)), set()
    for row in replies.read(path):
        tally.add(row, price)
        if replies.is_final(row):
            settled.add(replies.key(row))
    left = [query for query in queries if query.key not in settled]
    tally.finished = len(queries) - len(left)
    return tally, left


def _free(usage: Mapping[str, int]) -> float:
    return 0.0
