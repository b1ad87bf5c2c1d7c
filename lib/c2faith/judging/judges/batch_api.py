"""The Batch API as a judge: half the price, hours instead of minutes, the same journal and the same statuses.

A run writes its queries into batch files, each task's apart, submits all, polls, and yields what came back; what is
to be asked again goes into another batch. Interrupted at any point, the same command picks up the batches that are
open (see `tickets`) and submits only what no batch covers.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from c2faith.judging.judges import tickets
from c2faith.judging.judges.base import Query, Reply
from c2faith.judging.judges.course import Course
from c2faith.judging.judges.endpoint import Endpoint
from c2faith.judging.judges.limiter import seconds
from c2faith.judging.judges.openai_api import OpenAIJudge
from c2faith.judging.judges.outcome import Outcome, from_batch_row, from_error, from_exception, refusal
from c2faith.judging.judges.tickets import Ticket
from c2faith.records import InputError

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types import Batch

MOST_REQUESTS, MOST_BYTES = 50_000, 190_000_000
ENDED = ("completed", "failed", "expired", "cancelled")
METADATA_KEY = "c2faith_ticket"
CLOCK_SKEW_S = 3600.0
Value = TypeVar("Value")


class BatchJudge(OpenAIJudge):
    """An API judge that is asked through files and batches.

    Parameters
    ----------
    config, endpoint
        As of `OpenAIJudge`.
    folder : Path
        Where the run keeps its tickets; another run needs another one.
    poll_s : float
        Seconds between looks at a batch.
    most_requests, most_bytes : int
        Limits of one batch.
    **settings
        As of `OpenAIJudge`.
    """

    batched = True

    def __init__(
        self,
        config: Mapping[str, Any],
        endpoint: Endpoint,
        folder: Path,
        *,
        poll_s: float = 30.0,
        most_requests: int = MOST_REQUESTS,
        most_bytes: int = MOST_BYTES,
        **settings: Any,
    ):
        super().__init__(config, endpoint, **settings)
        self.folder = folder / self.judge_id
        self._poll_s, self._most_requests, self._most_bytes = poll_s, most_requests, most_bytes
        self._courses: dict[str, Course] = {}
        self._reserves: dict[str, float] = {}
        self._said = ""

    def status(self) -> str:
        """Where the batch stands."""
        return self._said

    def replies(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Reply]]:
        """Yield what open batches bring, then what new ones do; see `OpenAIJudge.replies`."""
        courses = [Course(query, self.dialect, self._attempts, self._backoff) for query in queries]
        self._courses = {tickets.custom_id(course.query): course for course in courses}
        under_way = [ticket for ticket in tickets.read(self.folder) if self._courses.keys() & ticket.ids]
        covered = frozenset().union(*(ticket.ids for ticket in under_way))
        under_way += self._write([name for name in self._courses if name not in covered])
        held: list[str] = []  # to be asked again once the next batch ends
        with self.endpoint.client(self.timeout_s) as client:
            while under_way:
                for ticket in under_way:
                    self._submit(client, ticket)
                ticket, batch = self._first_ended(client, under_way)
                under_way.remove(ticket)
                if batch.status == "failed":
                    held += self._hold(ticket, batch, last=not under_way)
                    continue
                fatal = None
                for name, outcome in self._collect(client, ticket, batch):
                    step, reply = self._after(self._courses[name], outcome)
                    if step.again:
                        held.append(name)
                    fatal = outcome if outcome.kind == "fatal" else fatal
                    yield self._courses[name].query, reply
                ticket.close()
                if fatal:
                    raise InputError(f"{self.endpoint.host}: {self.endpoint.redact(refusal(fatal))}")
                again, held = held, []
                under_way += self._write(again)

    # --- submitting ------------------------------------------------------------------------------------------

    def _write(self, names: Sequence[str]) -> list[Ticket]:
        """Tickets for those of the names that the budget has room for, a task's apart from another's."""
        chosen = []
        for name in names:
            if self.budget:
                if (reserve := self.budget.reserve(self._courses[name].query, self._courses[name].cap)) is None:
                    self._warn_of_budget()
                    break
                self._reserves[name] = reserve
            chosen.append(name)
        chosen.sort(key=lambda name: self._courses[name].query.task)
        return [
            ticket
            for _, of_task in itertools.groupby(chosen, key=lambda name: self._courses[name].query.task)
            for ticket in tickets.write(
                self.folder, map(self._line, of_task), self.dialect.rung, self._most_requests, self._most_bytes
            )
        ]

    def _line(self, name: str) -> dict[str, Any]:
        body = self._courses[name].request()
        return {"custom_id": name, "method": "POST", "url": self.endpoint.batch_path, "body": body}

    def _submit(self, client: OpenAI, ticket: Ticket) -> None:
        """See to it that the ticket's batch exists, and exists once.

        After a lost answer, in this run or an earlier one, the server is asked for the batch before another is
        made. The key is sent as an idempotency key too, for servers that heed one.
        """
        if ticket.batch_id:
            return
        if ticket.file_id is None:
            name, content = f"c2faith-{ticket.key}.jsonl", ticket.requests.read_bytes()
            ticket.file_id = self._call(lambda: client.files.create(file=(name, content), purpose="batch")).id
            ticket.save()

        def create_once() -> str:
            found = None if ticket.fresh else self._find(client, ticket)
            ticket.fresh = False
            if found is None:
                found = client.batches.create(
                    completion_window="24h",
                    endpoint=self.endpoint.batch_path,
                    input_file_id=ticket.file_id,
                    metadata={METADATA_KEY: ticket.key},
                    extra_headers={"Idempotency-Key": ticket.key},
                )
            return found.id

        ticket.batch_id = self._call(create_once)
        ticket.save()

    def _find(self, client: OpenAI, ticket: Ticket) -> Batch | None:
        """The ticket's batch among those of the account, newest first."""
        for batch in client.batches.list(limit=100):
            if (batch.metadata or {}).get(METADATA_KEY) == ticket.key or batch.input_file_id == ticket.file_id:
                return batch
            if batch.created_at < ticket.at - CLOCK_SKEW_S:
                return None
        return None

    def _call(self, function: Callable[[], Value]) -> Value:
        """Call the server, again after a backoff as long as the trouble may pass."""
        failures = 0
        while True:
            try:
                return function()
            except Exception as error:
                outcome = from_exception(error)
            failures += 1
            if outcome.kind == "fatal":
                raise InputError(f"{self.endpoint.host}: {self.endpoint.redact(refusal(outcome))}")
            if outcome.kind not in ("transient", "rate_limit") or failures >= self._attempts:
                message = self.endpoint.redact(outcome.message)
                raise InputError(f"{self.endpoint.host}: {message}; batches stay open, the same command resumes")
            wait = max(seconds(self._backoff, failures), outcome.wait_s or 0.0)
            self._said = f"waiting {wait:.0f} s: {self.endpoint.redact(outcome.message)[:60]}"
            time.sleep(wait)

    # --- waiting and reading ---------------------------------------------------------------------------------

    def _first_ended(self, client: OpenAI, under_way: Sequence[Ticket]) -> tuple[Ticket, Batch]:
        while True:
            said = []
            for ticket in under_way:
                batch = self._call(lambda ticket=ticket: client.batches.retrieve(ticket.batch_id))
                if batch.status in ENDED:
                    return ticket, batch
                counts = batch.request_counts
                done = f" {counts.completed + counts.failed}/{counts.total} requests" if counts else ""
                said.append(f"batch {batch.id} {batch.status}{done}")
            self._said = "; ".join(said)
            time.sleep(self._poll_s)

    def _hold(self, ticket: Ticket, batch: Batch, *, last: bool) -> list[str]:
        """The queries of a batch that the server did not take.

        What others under way take up (a limit on enqueued tokens) may be free when one of them ends; with none
        under way, the batch itself is at fault.
        """
        ticket.close()
        if last:
            errors = (batch.errors.data if batch.errors else None) or []
            reason = errors[0].message if errors else "no reason given"
            raise InputError(f"{self.endpoint.host}: batch {batch.id} was refused: {self.endpoint.redact(reason)}")
        names = [name for name in self._courses if name in ticket.ids]
        for name in names:
            if name in self._reserves:
                self.budget.settle(self._reserves.pop(name), {})
        return names

    def _collect(self, client: OpenAI, ticket: Ticket, batch: Batch) -> Iterator[tuple[str, Outcome]]:
        """(custom id, outcome) of those of the ticket's requests that are still open."""
        left = set(ticket.ids & self._courses.keys())
        for file_id in filter(None, (batch.output_file_id, batch.error_file_id)):
            content = self._call(lambda file_id=file_id: client.files.content(file_id).content)
            for line in content.splitlines():
                row = orjson.loads(line)
                if (name := row.get("custom_id")) in left:
                    left.remove(name)
                    yield name, self._batched(ticket, name, from_batch_row(row))
        for name in sorted(left):
            yield name, self._batched(ticket, name, from_error(None, f"batch {batch.status} without this request"))

    def _batched(self, ticket: Ticket, name: str, outcome: Outcome) -> Outcome:
        reply = self.endpoint.redacted(outcome.reply)
        usage = {**reply.usage, "batch_calls": 1} if reply.usage else {}
        if self.budget and name in self._reserves:
            self.budget.settle(self._reserves.pop(name), usage)
        elif self.budget:
            self.budget.spend(usage)
        extra = {**reply.extra, "batch": ticket.batch_id}
        return replace(outcome, reply=replace(reply, usage=usage, extra=extra, mode=ticket.mode))
