"""What every source shares: the request, the reasons for leaving a record out, content-derived names, lines."""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import orjson

from c2faith.records import Chain, InputError, NaturalItem, sha256


@dataclass(frozen=True, slots=True)
class Request:
    """What a source is asked for.

    Attributes
    ----------
    min_steps : int
        Shorter chains are left out.
    limit, seed : int
        How many chains a source that makes them should make, and the seed it makes them with. Sources that
        read a file yield all they have: `c2faith.dataset.chains` takes the sample.
    human_steps : bool
        Let PRM800K trajectories in that contain a step written by the labeler, which nobody rated.
    natural : bool
        Yield natural-error items beside the chains.
    """

    min_steps: int = 5
    limit: int = 450
    seed: int = 0
    human_steps: bool = False
    natural: bool = False


@dataclass(slots=True)
class Dropped:
    """How many records (of `read`) became no chain, and no natural item, by reason."""

    read: int = 0
    chains: Counter[str] = field(default_factory=Counter)
    natural: Counter[str] = field(default_factory=Counter)


class Source(Protocol):
    """A module that turns records into chains, and nothing else."""

    def inputs(self, path: str | None) -> dict[str, Path]:
        """The files to read by name, in reading order; an `InputError` if there are none to read."""

    def read(self, files: Mapping[str, Path], request: Request, dropped: Dropped) -> Iterator[Chain | NaturalItem]:
        """Chains, and natural items where asked for, one by one; what is left out is counted in `dropped`."""


def chain(source: str, question: str, steps: Sequence[str], **optional: Any) -> Chain:
    """A `Chain` named after its content: the same problem and steps have the same id in every file.

    Texts are taken without the white space around them, which is for the caller to strip.
    """
    return Chain(
        chain_id=chain_id(source, question, steps),
        problem_id=optional.pop("problem_id", None) or problem_id(source, question),
        source=source,
        question=question,
        steps=tuple(steps),
        **optional,
    )


def natural_item(
    source: str, question: str, steps: Sequence[str], first_error: int, problem: str | None = None
) -> NaturalItem:
    """A `NaturalItem` named after its content, like `chain`."""
    name = chain_id(source, question, steps)
    return NaturalItem(
        item_id=f"{name}/natural",
        chain_id=name,
        problem_id=problem or problem_id(source, question),
        source=source,
        question=question,
        steps=tuple(steps),
        first_error=first_error,
    )


def problem_id(source: str, question: str) -> str:
    """The name of a problem, from its text."""
    return f"{source}-{sha256(question)[:16]}"


def chain_id(source: str, question: str, steps: Sequence[str]) -> str:
    """The name of a solution, from its content: 64 bits, so that no two of a million share one."""
    return f"{source}-{sha256([question, *steps])[:16]}"


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """(line number from 1, parsed value) of a plain or gzipped JSON lines file, one line at a time.

    Raises
    ------
    InputError
        If the file cannot be read, holds no line, or a line is not one JSON value; the file and line are named.
    """
    number, records = 0, 0
    try:
        with _open(path) as file:
            for number, line in enumerate(file, start=1):
                try:
                    value = orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    if line.isspace():
                        continue
                    hint = (
                        "; it is a Git LFS pointer, run git lfs pull"
                        if line.startswith(b"version https://")
                        else ""
                    )
                    raise InputError(f"{path}, line {number}: not one JSON object ({error}){hint}") from None
                records += 1
                yield number, value
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}, after line {number}: cannot be read ({reason})") from None
    if not records:
        raise InputError(f"{path}: empty, it holds no record; give a file with one JSON object a line")


def _open(path: Path) -> Any:
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if zipped else path.open("rb", buffering=1 << 20)


def local_file(path: str | None, source: str) -> dict[str, Path]:
    """`path` as a source's only input; an `InputError` if it is no file."""
    if not path:
        raise InputError(f"SOURCE={source}: needs a path, the JSON lines file to read")
    if not Path(path).is_file():
        raise InputError(
            f"{path}: {'is a folder' if Path(path).is_dir() else 'no such file'}; give a JSON lines file"
        )
    return {Path(path).name: Path(path)}


def no_path(path: str | None, source: str) -> None:
    """Refuse a path where a source has nothing to read from it."""
    if path:
        raise InputError(f"SOURCE={source}: reads no file, so {path!r} has no use; leave the path empty")
