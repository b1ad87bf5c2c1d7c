"""Replies on disk: where they lie, which of them count, what pins them, and the journal they are written to.

A judge's replies of a task are append-only JSON lines, one an attempt, in ``replies/<judge_id>/<task>.jsonl``
under the run's live folder or the recorded one, beside ``judge.json``, which says what the judge is.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NotRequired, Self

from pydantic import BeforeValidator, ConfigDict, NonNegativeFloat, NonNegativeInt, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from c2faith import paths
from c2faith.judging import answers, verdicts
from c2faith.judging.judges.base import Judge, Key, Query, Reply
from c2faith.records import InputError, dump, iter_json_lines, read_json, write_json

Row = dict[str, Any]


class _Row(TypedDict):
    """What a journal's line may hold; a server's own words may be of any type, and are read as text."""

    __pydantic_config__ = ConfigDict(strict=True, extra="allow")

    item_id: str
    prompt_sha256: str
    attempt: NonNegativeInt
    text: NotRequired[str | None]
    finish_reason: NotRequired[Annotated[str | None, BeforeValidator(lambda value: value and answers.text(value))]]
    usage: NotRequired[dict[str, NonNegativeInt] | None]
    latency_s: NotRequired[NonNegativeFloat | None]
    model: NotRequired[str | None]
    mode: NotRequired[str | None]
    error: NotRequired[verdicts.Failure | None]
    scores: NotRequired[list[float] | None]
    extra: NotRequired[dict[str, Any] | None]
    at: NotRequired[str]


_ROW = TypeAdapter(_Row)


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
    found = [path for folder in folders(run) for path in folder.glob(f"replies/*/{task}.jsonl")]
    return sorted({path.parent.name for path in found if next(read(path), None)})


def of_run(run: str, judge_id: str, task: str) -> list[Row]:
    """All rows of a judge and task, recorded then live; what stands in both counts once."""
    recorded, live = (list(read(journal_path(folder, judge_id, task))) for folder in folders(run))
    known = {_attempt(row) for row in recorded}
    return recorded + [row for row in live if _attempt(row) not in known]


def _attempt(row: Row) -> tuple[Any, ...]:
    return *key(row), row.get("attempt"), row.get("at")


def read(path: Path) -> Iterator[Row]:
    """All complete rows of a journal, oldest first, each attempt once; nothing if there is no such file."""
    seen = set()
    for number, line in iter_json_lines(path, torn=True) if path.exists() else ():
        try:
            row = _ROW.validate_python(line)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"])) or "the line"
            raise InputError(f"{path}, line {number}: no journal row: {field}: {first['msg']}") from None
        if _attempt(row) not in seen:
            seen.add(_attempt(row))
            yield row


def key(row: Row) -> Key:
    """What a row replies to: the `Query.key` of its query."""
    return row["item_id"], row["prompt_sha256"]


def is_final(row: Row) -> bool:
    """Whether an attempt settles its item: the judge itself answered, and no further sample was due."""
    return verdicts.failure(row) != "api_error" and not (row.get("extra") or {}).get("will_retry")


def settled(rows: Iterable[Row]) -> set[Key]:
    """The keys that have a final row."""
    return {key(row) for row in rows if is_final(row)}


def latest(rows: Iterable[Row]) -> dict[Key, Row]:
    """The row that counts of every key: the last one, unless that is a failure after a final one."""
    known: dict[Key, Row] = {}
    for row in rows:
        if key(row) not in known or is_final(row) or not is_final(known[key(row)]):
            known[key(row)] = row
    return known


def pin(judge: Judge, folder: Path) -> None:
    """Write down what a judge is beside its replies under `folder`, or refuse to mix them with another one's."""
    path = judge_folder(folder, judge.judge_id) / "judge.json"
    if not path.exists():
        config = getattr(judge, "config", {})
        write_json(path, {**config, "judge_id": judge.judge_id, "fingerprint": judge.fingerprint})
    elif read_pin(path.parent)["fingerprint"] != judge.fingerprint:
        raise InputError(
            f"{path}: {judge.judge_id} was recorded with another model or other parameters; "
            "give the changed judge another name, or move the folder away"
        )


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

    A row is written by a single system call and forced to the disk every `checkpoint_s`. A torn last line is set
    aside on opening, so its item is asked again. A second process on the same journal is refused. One without any
    row is removed on closing.

    Raises
    ------
    InputError
        If another process holds the journal, the folder cannot be written, or a line is no journal row.
    """

    def __init__(self, path: Path, checkpoint_s: float = 5.0):
        self.path = path
        self._checkpoint_s, self._synced = checkpoint_s, time.monotonic()
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
            self._attempts = Counter(map(key, read(path)))
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

    def append(self, query: Query, reply: Reply) -> Row:
        """Write one attempt; on a full disk nothing of it stays and an `InputError` says so."""
        row = asdict(reply) | {
            "item_id": query.item_id,
            "prompt_sha256": query.prompt_sha256,
            "attempt": self._attempts[query.key],
            "latency_s": round(reply.latency_s, 4),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        line, size = dump(row) + b"\n", os.fstat(self._file).st_size
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
        self._attempts[query.key] += 1
        return row

    def _set_torn_line_aside(self) -> None:
        if not os.fstat(self._file).st_size:
            return
        with mmap.mmap(self._file, 0, access=mmap.ACCESS_READ) as raw:
            end = raw.rfind(b"\n") + 1
            torn = raw[end:]
        if torn:
            with self.path.with_suffix(".torn").open("ab") as aside:
                aside.write(torn + b"\n")
            os.ftruncate(self._file, end)
