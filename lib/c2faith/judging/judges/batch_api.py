"""The Batch API as a judge: half the price, hours instead of minutes, the same journal and the same statuses.

A run writes its queries into batch files, each task's apart, submits all, polls, and yields what came back; what is
to be asked again goes into another batch. Interrupted at any point, the same command picks up the batches that are
open (see `Ticket`) and submits only what no batch covers.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from c2faith.judging.judges.base import Query, Reply
from c2faith.judging.judges.concurrency import backoff_s
from c2faith.judging.judges.endpoint import Endpoint
from c2faith.judging.judges.openai_api import OpenAIJudge
from c2faith.judging.judges.request import Attempts
from c2faith.judging.judges.response import Response, from_batch_row, from_error, from_exception
from c2faith.records import InputError, dump, iter_json_lines, read_json, sha256, write_bytes, write_json

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types import Batch

ENDED = ("completed", "failed", "expired", "cancelled")
METADATA_KEY = "c2faith_ticket"
CLOCK_SKEW_S = 3600.0  # how far the server's clock may be behind
Value = TypeVar("Value")


@dataclass
class Ticket:
    """What was, or was about to be, submitted as one batch, kept on disk so that nothing is sent twice.

    Two files: ``<key>.jsonl``, the batch file itself, and ``<key>.json``, its state, written before the first
    request leaves and again after each answer. The key also goes to the server as the batch's metadata, so a batch
    whose answer was lost is found by listing.
    """

    key: str
    path: Path
    ids: frozenset[str]
    mode: str
    at: float
    file_id: str | None = None
    batch_id: str | None = None
    fresh: bool = field(default=True, compare=False)  # no request to make the batch was sent yet

    @property
    def requests(self) -> Path:
        """The batch file."""
        return self.path.with_suffix(".jsonl")

    def save(self) -> None:
        """Write the state."""
        kept = {name: value for name, value in asdict(self).items() if name not in ("path", "ids", "fresh")}
        write_json(self.path, kept)

    def close(self) -> None:
        """Forget the batch: all that it brought is in the journal, or it will bring nothing."""
        self.path.unlink(missing_ok=True)
        self.requests.unlink(missing_ok=True)


def read_tickets(folder: Path) -> Iterator[Ticket]:
    """The tickets of earlier runs that are not closed, oldest first."""
    states = [(path, read_json(path)) for path in folder.glob("*.json")]
    for path, state in sorted(states, key=lambda entry: entry[1].get("at", 0)):
        try:
            ids = frozenset(line["custom_id"] for _, line in iter_json_lines(path.with_suffix(".jsonl")))
            yield Ticket(**state, path=path, ids=ids, fresh=False)
        except (TypeError, KeyError):
            raise InputError(f"{path}: no ticket of a batch; delete it if nothing is under way") from None


def custom_id(query: Query) -> str:
    """The name of a query within batches: of its item and its key, so a changed prompt is another one."""
    return sha256([query.item_id, query.prompt_sha256])[:32]


class BatchJudge(OpenAIJudge):
    """An API judge that is asked through files and batches; `folder` is where the run keeps its tickets."""

    batched = True
    poll_s = 30.0
    most_requests, most_bytes = 50_000, 190_000_000

    def __init__(self, config: Mapping[str, Any], endpoint: Endpoint, folder: Path, **settings: Any):
        super().__init__(config, endpoint, **settings)
        self.folder = folder / self.judge_id
        self._asked: dict[str, Attempts] = {}

    def replies(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Reply]]:
        """Yield what open batches bring, then what new ones do; see `OpenAIJudge.replies`."""
        self._asked = {custom_id(query): self._attempts(query) for query in queries}
        under_way = [ticket for ticket in read_tickets(self.folder) if self._asked.keys() & ticket.ids]
        covered = frozenset().union(*(ticket.ids for ticket in under_way))
        under_way += self._write(name for name in self._asked if name not in covered)
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
                for name, response in self._collect(client, ticket, batch):
                    again, reply = self._after(self._asked[name], response)
                    if again:
                        held.append(name)
                    fatal = response if response.kind == "fatal" else fatal
                    yield self._asked[name].query, reply
                ticket.close()
                if fatal:
                    raise self._stop(fatal.refusal())
                under_way += self._write(held)
                held = []

    # --- submitting --------------------------------------------------------------------------------------------

    def _write(self, names: Iterable[str]) -> list[Ticket]:
        """Tickets for those of the names that the budget has room for, a task's apart from another's."""
        chosen = []
        for name in names:
            if not self._reserve(self._asked[name]):
                self._budget_reached()
                break
            chosen.append(name)
        parts: list[dict[str, bytes]] = []
        task, size = "", 0
        for name in sorted(chosen, key=lambda name: self._asked[name].query.task):
            body = self._asked[name].request()
            line = {"custom_id": name, "method": "POST", "url": self.endpoint.batch_path, "body": body}
            raw, asked = dump(line) + b"\n", self._asked[name].query.task
            if asked != task or len(parts[-1]) == self.most_requests or size + len(raw) > self.most_bytes:
                parts.append({})
                task, size = asked, 0
            parts[-1][name] = raw
            size += len(raw)
        return [self._ticket(part) for part in parts]

    def _ticket(self, lines: Mapping[str, bytes]) -> Ticket:
        key = uuid.uuid4().hex
        ticket = Ticket(key, self.folder / f"{key}.json", frozenset(lines), self.dialect.rung, time.time())
        write_bytes(ticket.requests, b"".join(lines.values()))
        ticket.save()
        return ticket

    def _submit(self, client: OpenAI, ticket: Ticket) -> None:
        """See to it that the ticket's batch exists, and exists once.

        After a lost answer, in this run or an earlier one, the server is asked for the batch before another is
        made. The key is sent as an idempotency key too, for servers that heed one.
        """
        if ticket.batch_id:
            return
        if ticket.file_id is None:
            name, content = f"c2faith-{ticket.key}.jsonl", ticket.requests.read_bytes()
            ticket.file_id = self._persistently(client.files.create, file=(name, content), purpose="batch").id
            ticket.save()

        def create_once() -> Batch:
            found = None if ticket.fresh else self._find(client, ticket)
            ticket.fresh = False
            return found or client.batches.create(
                completion_window="24h",
                endpoint=self.endpoint.batch_path,
                input_file_id=ticket.file_id,
                metadata={METADATA_KEY: ticket.key},
                extra_headers={"Idempotency-Key": ticket.key},
            )

        ticket.batch_id = self._persistently(create_once).id
        ticket.save()

    def _find(self, client: OpenAI, ticket: Ticket) -> Batch | None:
        """The ticket's batch among those of the account, newest first."""
        for batch in client.batches.list(limit=100):
            if (batch.metadata or {}).get(METADATA_KEY) == ticket.key or batch.input_file_id == ticket.file_id:
                return batch
            if batch.created_at < ticket.at - CLOCK_SKEW_S:
                return None
        return None

    def _persistently(self, function: Callable[..., Value], *arguments: Any, **named: Any) -> Value:
        """Call the server, again after a backoff as long as the trouble may pass."""
        failures = 0
        while True:
            try:
                return function(*arguments, **named)
            except Exception as error:
                response = from_exception(error)
            failures += 1
            if response.kind == "fatal":
                raise self._stop(response.refusal())
            if response.kind not in ("transient", "rate_limit") or failures >= self._most_attempts:
                raise self._stop(f"{response.message}; batches stay open, the same command resumes")
            wait = max(backoff_s(self._backoff, failures), response.wait_s or 0.0)
            self._trouble = f"waiting {wait:.0f} s: {self.endpoint.redact(response.message)[:60]}"
            time.sleep(wait)

    # --- waiting and reading -----------------------------------------------------------------------------------

    def _first_ended(self, client: OpenAI, under_way: Sequence[Ticket]) -> tuple[Ticket, Batch]:
        while True:
            said = []
            for ticket in under_way:
                batch = self._persistently(client.batches.retrieve, ticket.batch_id)
                if batch.status in ENDED:
                    return ticket, batch
                counts = batch.request_counts
                done = f" {counts.completed + counts.failed}/{counts.total} requests" if counts else ""
                said.append(f"batch {batch.id} {batch.status}{done}")
            self._trouble = "; ".join(said)
            time.sleep(self.poll_s)

    def _hold(self, ticket: Ticket, batch: Batch, *, last: bool) -> list[str]:
        """The queries of a batch that the server did not take.

        What others under way take up (a limit on enqueued tokens) may be free when one of them ends; with none
        under way, the batch itself is at fault.
        """
        ticket.close()
        if last:
            errors = (batch.errors.data if batch.errors else None) or []
            reason = errors[0].message if errors else "no reason given"
            raise self._stop(f"batch {batch.id} was refused: {reason}")
        names = [name for name in self._asked if name in ticket.ids]
        for name in names:
            self._settle(self._asked[name], {})
        return names

    def _collect(self, client: OpenAI, ticket: Ticket, batch: Batch) -> Iterator[tuple[str, Response]]:
        """(custom id, response) of those of the ticket's requests that were asked here."""
        left = set(ticket.ids & self._asked.keys())
        for file_id in filter(None, (batch.output_file_id, batch.error_file_id)):
            content = self._persistently(client.files.content, file_id).content
            for row in map(orjson.loads, content.splitlines()):
                if (name := row.get("custom_id")) in left:
                    left.remove(name)
                    yield name, _batched(ticket, from_batch_row(row))
        for name in sorted(left):
            yield name, _batched(ticket, from_error(None, f"batch {batch.status} without this request"))


def _batched(ticket: Ticket, response: Response) -> Response:
    reply = response.reply
    usage = {**reply.usage, "batch_calls": 1} if reply.usage else {}
    extra = {**reply.extra, "batch": ticket.batch_id}
    return replace(response, reply=replace(reply, usage=usage, extra=extra, mode=ticket.mode))
