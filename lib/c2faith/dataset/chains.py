"""Perfect chains from any source: no chain twice, one a problem, a seeded sample.

Every problem and every chain has a rank of its own, the hash of the seed and its name; the lowest are kept. So the
order of the records does not matter, and a sample of 8 is the beginning of the sample of 450.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from c2faith.records import Chain, InputError, NaturalItem, iter_json_lines, sha256

Found = Chain | NaturalItem
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


def source_module(name: str) -> ModuleType:
    """The module of the source of that name."""
    if name not in SOURCES:
        raise InputError(f"SOURCE={name}: no such source; choose one of {', '.join(SOURCES)}")
    return import_module(f"c2faith.dataset.sources.{name}")


class Unfit(Exception):  # noqa: N818 - a reason to leave a record out, not a mistake in it
    """Why a record becomes no chain, or no natural item."""


def leave_out(condition: Any, reason: str) -> None:
    """Let the record at hand be `Unfit` if the condition holds."""
    if condition:
        raise Unfit(reason)


def kept(reasons: Counter[str], make: Callable[..., Found], *arguments: Any) -> Iterator[Found]:
    """What `make` makes of a record; nothing, if that is `Unfit`, which is counted among the reasons."""
    try:
        yield make(*arguments)
    except Unfit as reason:
        reasons[str(reason)] += 1


def chain(source: str, question: str, steps: Sequence[str], problem: str | None = None, **optional: Any) -> Chain:
    """A `Chain` named after its texts: the same problem and steps have the same id in every file."""
    name, problem = f"{source}-{sha256([question, *steps])[:16]}", problem or f"{source}-{sha256(question)[:16]}"
    return Chain(name, problem, source, question, tuple(steps), **optional)


def natural_item(
    source: str, question: str, steps: Sequence[str], first_error: int, problem: str | None = None
) -> NaturalItem:
    """A `NaturalItem` named like a `chain`."""
    like = chain(source, question, steps, problem)
    names = f"{like.chain_id}/natural", like.chain_id, like.problem_id
    return NaturalItem(*names, source, question, like.steps, first_error)


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


class Draw:
    """A growing draw of at most `keep` distinct solutions a problem, in an order fixed by `seed`."""

    def __init__(self, seed: int, keep: int = 1) -> None:
        self.dropped: Counter[str] = Counter()
        self._seed, self._keep = seed, keep
        self._ids: set[str] = set()
        self._problems: dict[str, dict[str, Found]] = {}

    def add(self, found: Found) -> None:
        """Take a solution, unless it is there already or its problem has better ones."""
        if found.chain_id in self._ids:
            self.dropped["same problem and steps"] += 1
            return
        self._ids.add(found.chain_id)
        solutions = self._problems.setdefault(found.problem_id, {})
        solutions[self._rank(found.chain_id)] = found
        if len(solutions) > self._keep:
            del solutions[max(solutions)]
            self.dropped["another solution of its problem kept"] += 1

    def sample(self, limit: int | None) -> list[Found]:
        """The solutions of the first `limit` problems; the other problems' are counted as dropped."""
        order = sorted(self._problems, key=self._rank)
        first = order[:limit]
        for problem in order[len(first) :]:
            self.dropped["beyond the limit"] += len(self._problems[problem])
        return [self._problems[problem][rank] for problem in first for rank in sorted(self._problems[problem])]

    def _rank(self, name: str) -> str:
        return sha256(f"{self._seed}\0{name}")


def balanced(draw: Draw, limit: int | None) -> list[NaturalItem]:
    """The items of at most `limit` problems, of which correct solutions are at most half."""
    items = draw.sample(limit)
    right = [item for item in items if item.first_error < 0]
    spare = right[len(items) - len(right) :]
    if spare:
        draw.dropped["more correct than wrong solutions"] = len(spare)
    return [item for item in items if item not in spare]


def select(
    source: str, request: Request, *, path: str | None = None, require: bool = False
) -> tuple[list[Chain], list[NaturalItem], dict[str, Path], Dropped]:
    """As of `load_chains`, with natural-error items, the files that were read, and why the rest was left out."""
    module, dropped = source_module(source), Dropped()
    files = module.inputs(path)
    draws: dict[type, Draw] = {Chain: Draw(request.seed), NaturalItem: Draw(request.seed, keep=2)}
    for found in module.read(files, request, dropped):
        draws[type(found)].add(found)
    limit, least = request.limit, request.min_steps
    chains, natural = draws[Chain].sample(limit), balanced(draws[NaturalItem], request.natural_limit)
    if not chains:
        raise InputError(f"SOURCE={source}: has no perfect chain of at least {least} steps")
    if require and limit is not None and len(chains) < limit:
        raise InputError(
            f"LIMIT={limit}: {source} has only {len(chains)} perfect chains of at least {least} steps, one a "
            f"problem; ask for at most {len(chains)}, or for 'up to {limit}'"
        )
    dropped.chains += draws[Chain].dropped
    dropped.natural += draws[NaturalItem].dropped
    return chains, natural, files, dropped


def load_chains(source: str, *, path: str | None = None, require: bool = False, **asked: Any) -> list[Chain]:
    """Perfect chains: at least `min_steps` steps, every one rated right (Algorithm 1, line 5), one a problem.

    Parameters
    ----------
    source : {"champ", "prm800k", "jsonl", "synthetic"}
        Its module says what `path` may be.
    require
        Let fewer chains than `limit` be an `InputError`, as none at all is.
    asked
        `min_steps`, `limit`, `seed` and `human_steps`, with the defaults of `Request`.

    Examples
    --------
    >>> [chain.source for chain in load_chains("synthetic", limit=2)]
    ['synthetic', 'synthetic']
    """
    return select(source, Request(**asked), path=path, require=require)[0]


def parse_limit(limit: int | str) -> tuple[int | None, bool]:
    """How many chains are wanted, and whether exactly so many.

    >>> parse_limit("up to 450"), parse_limit("8"), parse_limit("all")
    ((450, False), (8, True), (None, False))
    """
    text = str(limit).strip()
    if text == "all":
        return None, False
    found = re.fullmatch(r"(up to +)?(\d+)", text)
    if found is None or int(found[2]) < 1:
        raise InputError(f"LIMIT={limit}: must be a whole number of at least 1, 'up to' one, or 'all'")
    return int(found[2]), found[1] is None
