"""Plan → journal: put to a judge what it has not answered yet, and write down every attempt.

The same command resumes: finished items are never asked again, pending ones are, and tokens and cost add up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from c2faith.judging import replies as journal
from c2faith.judging.judges.base import Judge, Query
from c2faith.progress import Progress
from c2faith.records import InputError, Task, read_json, write_json


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
        """Count one journal row."""
        self.calls += 1
        self.errors += row.get("error") == "api_error"
        for name, count in (row.get("usage") or {}).items():
            self.usage[name] = self.usage.get(name, 0) + count
        self.dollars += price(row.get("usage") or {})


def reply_path(folder: Path, judge_id: str, task: Task) -> Path:
    """Where a run's folder keeps the journal of a judge and task."""
    return folder / "replies" / judge_id / f"{task}.jsonl"


def judge(
    judge: Judge,
    queries: Sequence[Query],
    folder: Path,
    *,
    max_cost: float | None = None,
) -> Tally:
    """Ask a judge the queries of one task that are not finished in the run's folder.

    Parameters
    ----------
    judge : Judge
    queries : sequence of Query
        All planned queries of one task.
    folder : Path
        The run's folder; replies are appended to ``replies/<judge_id>/<task>.jsonl`` under it.
    max_cost : float, optional
        Dollars, over all resumes of this task; the judge stops before they are passed.

    Returns
    -------
    Tally

    Raises
    ------
    InputError
        If the judge was recorded with other parameters, the journal is held by another process, the disk is
        full, or the endpoint refuses for good (wrong key, no quota, no such model).
    """
    if not queries:
        return Tally()
    (tally,) = judge_tasks(judge, {queries[0].task: queries}, folder, max_cost=max_cost).values()
    return tally


def judge_tasks(
    judge: Judge,
    asked: Mapping[Task, Sequence[Query]],
    folder: Path,
    *,
    max_cost: float | None = None,
) -> dict[Task, Tally]:
    """As `judge`, the queries of several tasks in one go; `max_cost` holds for all of them together."""
    tallies = {task: Tally(items=len(queries)) for task, queries in asked.items()}
    price = getattr(judge, "price", _free)
    pin(judge, folder / "replies" / judge.judge_id)
    with ExitStack() as stack:
        books: dict[Task, journal.Journal] = {}
        pending: list[Query] = []
        for task, queries in asked.items():
            books[task] = stack.enter_context(journal.Journal(reply_path(folder, judge.judge_id, task)))
            for row in journal.read(books[task].path):
                tallies[task].add(row, price)
            left = [query for query in queries if not books[task].finished(query)]
            tallies[task].finished = len(queries) - len(left)
            pending += left
        if not pending:
            return tallies
        paid = sum(tally.dollars for tally in tallies.values())
        if max_cost is not None:
            if not hasattr(judge, "limit_spending"):
                raise InputError(f"MAX_COST={max_cost}: judge {judge.judge_id} has no prices to count with")
            judge.limit_spending(max_cost - paid)
        total = sum(tally.items for tally in tallies.values())
        label, status = f"{judge.judge_id} {'+'.join(asked)}", getattr(judge, "status", str)
        with Progress(label, total, total - len(pending), status=status) as progress:
            progress.dollars = paid
            for query, reply in judge.replies(pending):
                row = books[query.task].append(query, reply)
                tallies[query.task].add(row, price)
                if journal.is_final(row):
                    tallies[query.task].finished += 1
                    progress.advance(sum(tally.dollars for tally in tallies.values()))
    return tallies


def dollars(judge: Judge, folder: Path, task: Task) -> float:
    """What a judge's journal of a task has cost so far."""
    price = getattr(judge, "price", _free)
    return sum(price(row.get("usage") or {}) for row in journal.read(reply_path(folder, judge.judge_id, task)))


def pin(judge: Judge, folder: Path) -> None:
    """Write down what a judge is beside its replies, or refuse to mix them with those of another one."""
    path = folder / "judge.json"
    if path.exists():
        known = read_pin(folder)
        if known["fingerprint"] != judge.fingerprint:
            raise InputError(
                f"{path}: {judge.judge_id} was recorded with another model or other parameters; "
                "give the changed judge another name, or move the folder away"
            )
        return
    config = getattr(judge, "config", {"judge_id": judge.judge_id})
    write_json(path, {**config, "judge_id": judge.judge_id, "fingerprint": judge.fingerprint})


def read_pin(folder: Path) -> dict[str, Any]:
    """The `judge.json` beside a judge's replies."""
    pinned = read_json(folder / "judge.json")
    if not isinstance(pinned, dict) or not {"judge_id", "fingerprint"} <= pinned.keys():
        raise InputError(f"{folder / 'judge.json'}: no judge (judge_id and fingerprint are required)")
    return pinned


def _free(usage: Mapping[str, int]) -> float:
    return 0.0
