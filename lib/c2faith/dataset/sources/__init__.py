"""Where chains come from: one module a source, which turns records into chains, and nothing else.

A new source is its name in `SOURCES` and a module of two functions: ``inputs(path)`` names the files to read, in
order, or raises an `InputError`; ``read(files, request, dropped)`` yields chains, and natural items if asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from c2faith.records import Chain, InputError, NaturalItem, iter_json_lines, sha256

Found = TypeVar("Found", Chain, NaturalItem)
SOURCES = ("champ", "prm800k", "jsonl", "synthetic")


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for."""

    min_steps: int = 5  # the paper's N_min
    limit: int | None = 450  # chains, as many as the paper has; None: all
    natural_limit: int | None = 450  # problems of which natural-error items come, at most two each; None: all
    human_steps: bool = False  # whether PRM800K steps will do that the labeler wrote and nobody rated
    seed: int = 0  # of the sample, and of synthetic chains
    natural: bool = False  # whether natural-error items are wanted, too

    def __post_init__(self) -> None:
        for name, least in (("min_steps", 1), ("limit", 1), ("natural_limit", 1), ("seed", 0)):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
            if not whole and (value is not None or "limit" not in name):
                raise InputError(f"{name.upper()}={value!r}: must be a whole number of at least {least}")


@dataclass(slots=True)
class Dropped:
    """How many records (of `read`) became no chain, and no natural item, by reason."""

    read: int = 0
    chains: Counter[str] = field(default_factory=Counter)
    natural: Counter[str] = field(default_factory=Counter)


def get(name: str) -> ModuleType:
    """The module of the source of that name."""
    if name not in SOURCES:
        raise InputError(f"SOURCE={name}: no such source; choose one of {', '.join(SOURCES)}")
    return import_module(f"{__name__}.{name}")


class Unfit(Exception):  # noqa: N818 - a reason to leave a record out, not a mistake in it
    """Why a record becomes no chain, or no natural item."""


def kept(reasons: Counter[str], make: Callable[..., Found], *arguments: Any) -> Iterator[Found]:
    """What `make` makes of a record; nothing, if that is `Unfit`, which is counted among the reasons."""
    try:
        yield make(*arguments)
    except Unfit as reason:
        reasons[str(reason)] += 1


def chain(source: str, question: str, steps: Sequence[str], problem: str | None = None, **optional: Any) -> Chain:
    """A `Chain` named after its texts: the same problem and steps have the same id in every file."""
    return Chain(*_names(source, question, steps, problem), source, question, tuple(steps), **optional)


def natural_item(
    source: str, question: str, steps: Sequence[str], first_error: int, problem: str | None = None
) -> NaturalItem:
    """A `NaturalItem` named after its content, like `chain`."""
    name, problem = _names(source, question, steps, problem)
    return NaturalItem(f"{name}/natural", name, problem, source, question, tuple(steps), first_error)


def _names(source: str, question: str, steps: Sequence[str], problem: str | None) -> tuple[str, str]:
    return f"{source}-{sha256([question, *steps])[:16]}", problem or f"{source}-{sha256(question)[:16]}"


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """`records.iter_json_lines` of a file that must hold a record."""
    number = 0
    for number, value in iter_json_lines(path):
        yield number, value
    if not number:
        raise InputError(f"{path}: empty, it holds no record; give a file with one JSON object a line")


def no_path(path: str | None, source: str) -> None:
    """Refuse a path where a source has nothing to read from it."""
    if path:
        raise InputError(
            f"SOURCE={source}: reads no file, so {path!r} has no use; leave the path empty (SOURCE_PATH)"
        )
