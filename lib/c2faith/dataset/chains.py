"""Perfect chains from any source: no chain twice, one a problem, a seeded sample.

Every problem and every chain has a rank of its own, the hash of the seed and its name; the lowest are kept. So the
order of the records does not matter, and a sample of 8 is the beginning of the sample of 450.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar

from c2faith.dataset import sources
from c2faith.dataset.sources import Dropped, Request
from c2faith.records import Chain, InputError, NaturalItem

Found = TypeVar("Found", Chain, NaturalItem)


class Draw(Generic[Found]):
    """A growing draw of at most `keep` distinct solutions a problem, in an order fixed by `seed`."""

    def __init__(self, seed: int, keep: int = 1) -> None:
        self.dropped: Counter[str] = Counter()
        self._seed, self._keep = seed, keep
        self._ids: set[str] = set()
        self._problems: dict[str, dict[bytes, Found]] = {}

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

    def _rank(self, name: str) -> bytes:
        return sha256(f"{self._seed}\0{name}".encode()).digest()


def balanced(draw: Draw[NaturalItem], limit: int | None) -> list[NaturalItem]:
    """The items of at most `limit` problems, of which correct solutions are at most half."""
    items = draw.sample(limit)
    right = [item for item in items if item.first_error < 0]
    spare = right[len(items) - len(right) :]
    if spare:
        draw.dropped["more correct than wrong solutions"] = len(spare)
    return [item for item in items if item not in spare]


@dataclass(frozen=True, slots=True)
class Selection:
    """What was taken of a source, and why the rest was left out."""

    chains: list[Chain]
    natural: list[NaturalItem]
    files: dict[str, Path]
    dropped: Dropped


def select(source: str, request: Request, *, path: str | None = None, require: bool = False) -> Selection:
    """Perfect chains, as of `load_chains`, and natural-error items where asked for."""
    module, dropped = sources.get(source), Dropped()
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
    return Selection(chains, natural, files, dropped)


def load_chains(
    source: str,
    *,
    path: str | None = None,
    min_steps: int = 5,
    limit: int | None = 450,
    seed: int = 0,
    require: bool = False,
    human_steps: bool = False,
) -> list[Chain]:
    """Perfect chains: at least `min_steps` steps, every one rated right (Algorithm 1, line 5), one a problem.

    Parameters
    ----------
    source : {"champ", "prm800k", "jsonl", "synthetic"}
        Its module says what `path` may be.
    min_steps, limit, seed, human_steps
        As of `sources.Request`.
    require
        Let fewer chains than `limit` be an `InputError`, as none at all is.

    Examples
    --------
    >>> [chain.source for chain in load_chains("synthetic", limit=2)]
    ['synthetic', 'synthetic']
    """
    request = Request(min_steps=min_steps, limit=limit, human_steps=human_steps, seed=seed)
    return select(source, request, path=path, require=require).chains


def parse_limit(limit: int | str) -> tuple[int | None, bool]:
    """How many chains are wanted, and whether exactly so many.

    >>> parse_limit("up to 450"), parse_limit("8"), parse_limit("all")
    ((450, False), (8, True), (None, False))
    """
    if str(limit).strip() == "all":
        return None, False
    found = re.fullmatch(r"(up to +)?(\d+)", str(limit).strip())
    if found is None or int(found[2]) < 1:
        raise InputError(f"LIMIT={limit}: must be a whole number of at least 1, 'up to' one, or 'all'")
    return int(found[2]), found[1] is None
