"""Tickets of the Batch API: what was, or was about to be, submitted, kept on disk so that nothing is sent twice.

A ticket is two files in the judge's folder: ``<key>.jsonl``, the batch file itself, and ``<key>.json``, its state.
The state is written before the first request leaves (the intent) and again after each answer. The key also goes
to the server as the batch's metadata, so a batch whose answer was lost is found by listing.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from c2faith.judging.judges.base import Query
from c2faith.records import InputError, dump, iter_json_lines, read_json, sha256, write_bytes, write_json


@dataclass
class Ticket:
    """One batch: its requests' ids, and how far its submission is known to have come."""

    key: str
    path: Path
    ids: frozenset[str]
    mode: str
    at: float
    file_id: str | None = None
    batch_id: str | None = None
    fresh: bool = field(default=True, compare=False)

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


def custom_id(query: Query) -> str:
    """The name of a query within batches: of its item and its key, so a changed prompt is another one."""
    return sha256([query.item_id, query.prompt_sha256])[:32]


def write(folder: Path, lines: Iterable[Mapping[str, Any]], mode: str, most: int, most_bytes: int) -> list[Ticket]:
    """Tickets for a batch file's lines, as many as the limits on one batch demand."""
    tickets, kept, ids = [], [], []

    def cut() -> None:
        key = uuid.uuid4().hex
        ticket = Ticket(key, folder / f"{key}.json", frozenset(ids), mode, time.time())
        write_bytes(ticket.requests, b"".join(kept))
        ticket.save()
        tickets.append(ticket)
        kept.clear()
        ids.clear()

    size = 0
    for line in lines:
        raw = dump(line) + b"\n"
        if kept and (len(kept) == most or size + len(raw) > most_bytes):
            cut()
            size = 0
        kept.append(raw)
        ids.append(line["custom_id"])
        size += len(raw)
    if kept:
        cut()
    return tickets


def read(folder: Path) -> Iterator[Ticket]:
    """The tickets of earlier runs that are not closed, oldest first."""
    states = [(path, read_json(path)) for path in folder.glob("*.json")]
    for path, state in sorted(states, key=lambda entry: entry[1].get("at", 0)):
        try:
            ids = frozenset(line["custom_id"] for _, line in iter_json_lines(path.with_suffix(".jsonl")))
            yield Ticket(**state, path=path, ids=ids, fresh=False)
        except (TypeError, KeyError):
            raise InputError(f"{path}: no ticket of a batch; delete it if nothing is under way") from None
