"""The journal of replies: append-only JSON lines, one an attempt, that survives kills and full disks.

A row is written by a single system call and forced to the disk at checkpoints. A torn last line (a kill, a full
disk) is set aside on opening, so its item is asked again. A second process on the same journal is refused.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from c2faith.judging.judges.base import Query, Reply
from c2faith.records import InputError, dump, iter_json_lines

Key = tuple[str, str]
_REQUIRED = ("item_id", "prompt_sha256", "attempt")


class Journal:
    """An open journal; use it as a context manager.

    Parameters
    ----------
    path : Path
        ``replies/<judge_id>/<task>.jsonl``; its folder is made.
    checkpoint_s : float
        At most so many seconds of replies are at the mercy of a power cut.

    Raises
    ------
    InputError
        If another process holds the journal, the folder cannot be written, or a line is no journal row.
    """

    def __init__(self, path: Path, checkpoint_s: float = 5.0):
        self.path = path
        self._checkpoint_s = checkpoint_s
        self._synced = time.monotonic()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror})") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise InputError(f"{path}: another process is writing it; wait for it or use another RUN") from None
        try:
            self._set_torn_line_aside()
            self.latest = latest(path)
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.fsync(self._file)
        os.close(self._file)

    def finished(self, query: Query) -> bool:
        """Whether the query has a reply that is the judge's own, be it readable or not."""
        row = self.latest.get((query.item_id, query.prompt_sha256))
        return row is not None and is_final(row)

    def append(self, query: Query, reply: Reply) -> dict[str, Any]:
        """Write one attempt; on a full disk nothing of it stays and an `InputError` says so."""
        key = (query.item_id, query.prompt_sha256)
        before = self.latest.get(key)
        row = {
            "item_id": query.item_id,
            "prompt_sha256": query.prompt_sha256,
            "attempt": before["attempt"] + 1 if before else 0,
            "text": reply.text,
            "finish_reason": reply.finish_reason,
            "usage": dict(reply.usage),
            "latency_s": round(reply.latency_s, 4),
            "model": reply.model,
            "mode": reply.mode,
            "error": reply.error,
            "scores": reply.scores,
            "extra": dict(reply.extra),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        self._write(dump(row) + b"\n")
        self.latest[key] = {name: row[name] for name in ("attempt", "error", "extra")}
        return row

    def _write(self, line: bytes) -> None:
        size = os.fstat(self._file).st_size
        try:
            if os.write(self._file, line) != len(line):
                raise OSError(28, "No space left on device")
            if time.monotonic() - self._synced > self._checkpoint_s:
                os.fsync(self._file)
                self._synced = time.monotonic()
        except OSError as error:
            os.ftruncate(self._file, size)
            raise InputError(
                f"{self.path}: {error.strerror}; what was finished is kept, make room and run the same command"
            ) from error

    def _set_torn_line_aside(self) -> None:
        size = os.fstat(self._file).st_size
        tail, start = b"", size
        while start and b"\n" not in tail:
            step = min(1 << 16, start)
            start -= step
            tail = os.pread(self._file, step, start) + tail
        torn = tail[tail.rfind(b"\n") + 1 :]
        if torn:
            with self.path.with_suffix(".torn").open("ab") as aside:
                aside.write(torn + b"\n")
            os.ftruncate(self._file, size - len(torn))


def is_final(row: dict[str, Any]) -> bool:
    """Whether an attempt settles its item: the judge itself answered, and no further sample was due."""
    return row.get("error") != "api_error" and not (row.get("extra") or {}).get("will_retry")


def read(path: Path) -> Iterator[dict[str, Any]]:
    """All complete rows of a journal, oldest first; nothing if there is no such file."""
    if not path.exists():
        return
    for number, row in iter_json_lines(path, torn=True):
        if not isinstance(row, dict) or any(name not in row for name in _REQUIRED):
            raise InputError(f"{path}, line {number}: no journal row ({', '.join(_REQUIRED)} are required)")
        yield row


def latest(path: Path) -> dict[Key, dict[str, Any]]:
    """What resuming needs of the last attempt of every key; a final attempt is not overruled by a later failure."""
    known: dict[Key, dict[str, Any]] = {}
    for row in read(path):
        key = (row["item_id"], row["prompt_sha256"])
        if key not in known or is_final(row) or not is_final(known[key]):
            known[key] = {name: row.get(name) for name in ("attempt", "error", "extra")}
    return known
