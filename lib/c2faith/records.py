"""Typed rows (frozen dataclasses) and the files they live in.

Writing is atomic and canonical (sorted keys, UTF-8, one object a line), so that the same rows are the same bytes;
reading names the file and the line of whatever is wrong.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import orjson
from pydantic import TypeAdapter, ValidationError

Row = TypeVar("Row")


class InputError(ValueError):
    """Input that cannot be used: one line saying what, where (file and line) and what to do."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The ordered steps of one solution of one problem; both have names made from their content."""

    chain_id: str
    problem_id: str
    source: str
    question: str
    steps: tuple[str, ...]
    answer: str | None = None  # never enters a prompt
    concepts: tuple[tuple[int, ...], ...] | None = None  # of each step, the concepts and hints it uses (CHAMP only)


@dataclass(frozen=True, slots=True)
class CausalityItem:
    """A chain with one step replaced by its negation (Algorithm 1, lines 15-22)."""

    item_id: str
    chain_id: str
    steps: tuple[str, ...]
    target: int  # 0-based
    original_step: str
    perturbed_step: str
    context: str
    negator: str
    edit_type: str
    similarity: float


@dataclass(frozen=True, slots=True)
class CoverageItem:
    """A chain with middle steps removed (Algorithm 1, lines 6-14)."""

    item_id: str
    chain_id: str
    deletion_rate: float  # 0 is the control
    steps: tuple[str, ...]
    removed: tuple[int, ...]  # 0-based, of the original chain
    realized_rate: float  # of the middle region: because of the ceiling at least the nominal rate
    realized_chain_rate: float


@dataclass(frozen=True, slots=True)
class NaturalItem:
    """A model's own solution whose first wrong step a person marked."""

    item_id: str
    chain_id: str
    problem_id: str
    source: str
    question: str
    steps: tuple[str, ...]
    first_error: int  # 0-based, −1 if there is none


def dump(value: Any) -> bytes:
    """Canonical JSON of a row or of plain values, without the line break."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def dump_lines(rows: Iterable[Any]) -> bytes:
    """Rows as canonical JSON lines."""
    return b"".join(dump(row) + b"\n" for row in rows)


def sha256(value: Any) -> str:
    """Hex SHA-256 of bytes, of a text's UTF-8, or of the canonical JSON of anything else."""
    if isinstance(value, str):
        value = value.encode()
    return hashlib.sha256(value if isinstance(value, bytes) else dump(value)).hexdigest()


def sha256_file(path: Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def replacing(path: Path) -> Iterator[Any]:
    """A binary file that takes the place of `path` only when the block ends well."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose a folder you may write") from error
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise InputError(f"{path}: cannot be written ({error.strerror})") from error
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Write a whole file, or leave what was there."""
    with replacing(path) as file:
        file.write(content)


def write_jsonl(path: Path, rows: Iterable[Any]) -> int:
    """Write rows as canonical JSON lines, whole or not at all; returns how many."""
    content = dump_lines(rows)
    write_bytes(path, content)
    return content.count(b"\n")


def write_json(path: Path, value: Any) -> None:
    """Write one indented, sorted JSON document, whole or not at all."""
    write_bytes(path, orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2) + b"\n")


def iter_json_lines(path: Path, *, torn: bool = False) -> Iterator[tuple[int, Any]]:
    """(line number from 1, parsed value) of every line of a plain or gzipped file, read one by one.

    With `torn` a last line without its end, which a killed writer leaves, is passed over.
    """
    number = 0
    try:
        with path.open("rb", buffering=1 << 20) as raw:
            zipped = raw.peek(2).startswith(b"\x1f\x8b")
            for number, line in enumerate(gzip.GzipFile(fileobj=raw) if zipped else raw, start=1):
                if torn and not line.endswith(b"\n"):
                    continue
                try:
                    value = orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    if line.isspace():
                        continue
                    hint = "; it is a Git LFS pointer, run git lfs pull" if line.startswith(b"version") else ""
                    raise InputError(f"{path}, line {number}: not one JSON object ({error}){hint}") from None
                yield number, value
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        where = f"{path}, after line {number}" if path.is_file() else path
        raise InputError(f"{where}: cannot be read ({reason})") from error


def read_json(path: Path) -> Any:
    """A whole file as one JSON document."""
    try:
        return orjson.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path}: not a JSON document ({error})") from None


_adapter = cache(TypeAdapter)


def validated(value: Any, row_type: type[Row], where: str, hint: str = "") -> Row:
    """A parsed line as a row; `where` it stands and a `hint` are for the error."""
    try:
        return _adapter(row_type).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the line"
        raise InputError(f"{where}: {field}: {first['msg']}{hint}") from None


def read_jsonl(path: Path, row_type: type[Row]) -> list[Row]:
    """All rows of a file; an `InputError` names the file, line and field of what is wrong."""
    return [validated(value, row_type, f"{path}, line {number}") for number, value in iter_json_lines(path)]


def as_dict(row: Any) -> dict[str, Any]:
    """A row's fields as a plain dict, for building frames."""
    return asdict(row)


def rng(seed: int, *words: str) -> np.random.Generator:
    """An independent generator for (seed, words): a chain's draw does not depend on its neighbours.

    >>> int(rng(0, "causality", "a").integers(1000)) == int(rng(0, "causality", "a").integers(1000))
    True
    """
    key = int.from_bytes(hashlib.sha256("\0".join(words).encode()).digest()[:16])
    return np.random.default_rng(np.random.SeedSequence([seed, key]))
