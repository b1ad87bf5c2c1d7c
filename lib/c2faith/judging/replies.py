"""Replies on disk: where they lie, which of them count, what pins them, and the journal that they are written to.

A judge's replies of a task are append-only JSON lines, one an attempt, in ``replies/<judge_id>/<task>.jsonl``
under the run's live folder or the recorded one, beside ``judge.json``, which says what the judge is.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from c2faith import paths
from c2faith.judging.judges.base import Judge, Query, Reply
from c2faith.records import InputError, dump, iter_json_lines, read_json, write_json

Key = tuple[str, str]
Row = dict[str, Any]
_REQUIRED = ("item_id", "prompt_sha256", "attempt")


def folders(run: str) -> tuple[Path, Path]:
    """Where a run's replies lie: the recorded ones, then the live ones."""
    return paths.frozen_dir(run), paths.run_dir(run)


def judge_folder(folder: Path, judge_id: str) -> Path:
    """Where one of those folders keeps what is a judge's."""
    return folder / "replies" / judge_id


def journal_path(folder: Path, judge_id: str, task: str) -> Path:
    """Where one of those folders keeps the journal of a judge and task."""
    return judge_folder(folder, judge_id) / f"{task}.jsonl"


def asked(run: str, task: str) -> list[str]:
    """Sorted ids of the judges that have a reply of this task, be it a failure."""
    found = {path for folder in folders(run) for path in folder.glob(f"replies/*/{task}.jsonl")}
    return sorted({path.parent.name for path in found if next(read(path), None)})


def of_run(run: str, judge_id: str, task: str) -> list[Row]:
    """All rows of a judge and task, recorded then live; what stands in both counts once."""
    recorded, live = (list(read(journal_path(folder, judge_id, task))) for folder in folders(run))
    known = {_attempt(row) for row in recorded}
    return recorded + [row for row in live if _attempt(row) not in known]


def read(path: Path) -> Iterator[Row]:
    """All complete rows of a journal, oldest first; nothing if there is no such file."""
    if not path.exists():
        return
    for number, row in iter_json_lines(path, torn=True):
        if not isinstance(row, dict) or any(name not in row for name in _REQUIRED):
            raise InputError(f"{path}, line {number}: no journal row ({', '.join(_REQUIRED)} are required)")
        yield row


def key(row: Row) -> Key:
    """What a row replies to: the `Query.key` of its query."""
    return row["item_id"], row["prompt_sha256"]


def is_final(row: Row) -> bool:
    """Whether an attempt settles its item: the judge itself answered, and no further sample was due."""
    return row.get("error") != "api_error" and not (row.get("extra") or {}).get("will_retry")


def latest(rows: Iterable[Row]) -> dict[Key, Row]:
    """The row that counts of every key: the last one, unless that is a failure after a final one."""
    known: dict[Key, Row] = {}
    for row in rows:
        if key(row) not in known or is_final(row) or not is_final(known[key(row)]):
            known[key(row)] = row
    return known


def settled(path: Path) -> set[Key]:
    """The keys that a journal has a final row of."""
    return {key(row) for row in read(path) if is_final(row)}


def pin(judge: Judge, folder: Path) -> None:
    """Write down what a judge is beside its replies under `folder`, or refuse to mix them with another one's."""
    place = judge_folder(folder, judge.judge_id)
    if (place / "judge.json").exists():
        if read_pin(place)["fingerprint"] != judge.fingerprint:
            raise InputError(
                f"{place / 'judge.json'}: {judge.judge_id} was recorded with another model or other parameters; "
                "give the changed judge another name, or move the folder away"
            )
        return
    config = getattr(judge, "config", {"judge_id": judge.judge_id})
    write_json(place / "judge.json", {**config, "judge_id": judge.judge_id, "fingerprint": judge.fingerprint})


def read_pin(place: Path) -> dict[str, Any]:
    """The `judge.json` in a judge's folder."""
    pinned = read_json(place / "judge.json")
    if not isinstance(pinned, dict) or not {"judge_id", "fingerprint"} <= pinned.keys():
        raise InputError(f"{place / 'judge.json'}: no judge (judge_id and fingerprint are required)")
    return pinned


def pinned(run: str, judge_id: str) -> dict[str, Any]:
    """What a judge of a run is, as written down beside its recorded replies, else beside the live ones."""
    for folder in folders(run):
        if (judge_folder(folder, judge_id) / "judge.json").exists():
            return read_pin(judge_folder(folder, judge_id))
    raise InputError(f"judge {judge_id} has no replies in run {run}: run `make judge RUN={run} JUDGE={judge_id}`")


class Journal:
    """An open journal, to be used as a context manager: it survives kills and full disks.

    A row is written by a single system call and forced to the disk at checkpoints. A torn last line is set aside on
    opening, so its item is asked again. A second process on the same journal is refused. One without any row is
    removed on closing.

    Parameters
    ----------
    path
        Its folder is made.
    checkpoint_s
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
            if not os.fstat(self._file).st_nlink:  # its last holder removed it meanwhile
                raise OSError
        except OSError:
            os.close(self._file)
            raise InputError(f"{path}: another process is writing it; wait for it or use another RUN") from None
        try:
            self._set_torn_line_aside()
            self._latest = latest(map(_slim, read(path)))
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.fsync(self._file)
        if not os.fstat(self._file).st_size:
            self.path.unlink(missing_ok=True)
        os.close(self._file)

    def finished(self, query: Query) -> bool:
        """Whether the query has a reply that is the judge's own, be it readable or not."""
        row = self._latest.get(query.key)
        return row is not None and is_final(row)

    def append(self, query: Query, reply: Reply) -> dict[str, Any]:
        """Write one attempt; on a full disk nothing of it stays and an `InputError` says so."""
        before = self._latest.get(query.key)
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
        self._latest[query.key] = _slim(row)
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


def _attempt(row: Row) -> tuple[Any, ...]:
    return *key(row), row.get("attempt"), row.get("at")


def _slim(row: Row) -> Row:
    """What resuming needs of a row, without its text."""
    return {name: row.get(name) for name in (*_REQUIRED, "error", "extra")}
