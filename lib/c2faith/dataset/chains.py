"""Perfect chains from any source: no chain twice, one a problem, a seeded sample.

What is kept does not depend on the order of the records: every problem and every chain has a rank of its own,
the hash of the seed and its name. A problem keeps its lowest-ranking chain, the sample the lowest-ranking
problems. So a sample of 8 is the beginning of the sample of 450, and a stream needs no second pass.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from typing import Generic, TypeVar

from c2faith.dataset import sources
from c2faith.records import Chain, InputError, NaturalItem

__all__ = ["Chain", "Draw", "load_chains", "select_chains", "select_natural"]

Found = TypeVar("Found", Chain, NaturalItem)


class Draw(Generic[Found]):
    """A growing draw of at most `keep` distinct solutions a problem, in an order fixed by `seed`."""

    def __init__(self, seed: int, keep: int = 1) -> None:
        self.dropped: Counter[str] = Counter()
        self._seed, self._keep = seed, keep
        self._ids: set[str] = set()
        self._problems: dict[str, list[tuple[bytes, Found]]] = {}

    def add(self, found: Found) -> None:
        """Take a solution, unless it is there already or its problem has better ones."""
        if found.chain_id in self._ids:
            self.dropped["same problem and steps"] += 1
            return
        self._ids.add(found.chain_id)
        kept = self._problems.setdefault(found.problem_id, [])
        kept.append((self._rank(found.chain_id), found))
        if len(kept) > self._keep:
            kept.remove(max(kept, key=lambda pair: pair[0]))
            self.dropped["another solution of its problem kept"] += 1

    def sample(self, limit: int) -> list[Found]:
        """The solutions of the first `limit` problems; the other problems' are counted as dropped."""
        order = sorted(self._problems, key=self._rank)
        for problem in order[limit:]:
            self.dropped["beyond the limit"] += len(self._problems[problem])
        return [
            found
            for problem in order[:limit]
            for _, found in sorted(self._problems[problem], key=lambda pair: pair[0])
        ]

    def _rank(self, name: str) -> bytes:
        return sha256(f"{self._seed}\0{name}".encode()).digest()


def select_chains(chains: Iterable[Chain], *, limit: int = 450, seed: int = 0) -> tuple[list[Chain], Counter[str]]:
    """At most `limit` chains: duplicates of (problem, steps) go first, then one chain a problem, then a sample.

    Returns
    -------
    chains : list of Chain
        In their seeded order.
    dropped : Counter
        How many were left out, by reason.

    Examples
    --------
    >>> twice = [Chain("a", "p", "jsonl", "1 + 1?", ("2",)), Chain("a", "p", "jsonl", "1 + 1?", ("2",))]
    >>> select_chains(twice)[1]
    Counter({'same problem and steps': 1})
    """
    draw: Draw[Chain] = Draw(seed)
    for chain in chains:
        draw.add(chain)
    return draw.sample(limit), draw.dropped


def select_natural(draw: Draw[NaturalItem], limit: int) -> list[NaturalItem]:
    """The items of at most `limit` problems, of which correct solutions are at most half.

    Without a single wrong solution nothing can be localized, so that nothing is left.
    """
    items = draw.sample(limit)
    spare = sum(item.first_error >= 0 for item in items)
    kept = []
    for item in items:
        if item.first_error >= 0 or spare > 0:
            kept.append(item)
            spare -= item.first_error < 0
        else:
            draw.dropped["more correct than wrong solutions"] += 1
    return kept


def parse_limit(limit: int | str) -> tuple[int, bool]:
    """How many chains are wanted, and whether exactly so many: ``"up to 450"`` asks for no more than there are.

    >>> parse_limit("up to 450"), parse_limit("8")
    ((450, False), (8, True))
    """
    found = re.fullmatch(r"(up to +)?(\d+)", str(limit).strip())
    if found is None or int(found[2]) < 1:
        raise InputError(f"LIMIT={limit}: must be a whole number of at least 1, or 'up to' one")
    return int(found[2]), found[1] is None


def check_whole(**numbers: int) -> None:
    """Refuse a number that is not whole or not at least 1 (the seed: 0)."""
    for name, value in numbers.items():
        least = 0 if name == "seed" else 1
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"{name.upper()}={value!r}: must be a whole number of at least {least}")


def check_reached(n_chains: int, limit: int, source: str, min_steps: int, require: bool) -> None:
    """Refuse no chain at all, and with `require` fewer than `limit`."""
    if not n_chains:
        raise InputError(f"SOURCE={source}: has no perfect chain of at least {min_steps} steps")
    if require and n_chains < limit:
        raise InputError(
            f"LIMIT={limit}: {source} has only {n_chains} perfect chains of at least {min_steps} steps, one a "
            f"problem; ask for at most {n_chains}, or for 'up to {limit}'"
        )


def load_chains(
    source: str,
    *,
    path: str | None = None,
    min_steps: int = 5,
    limit: int = 450,
    seed: int = 0,
    require: bool = False,
    human_steps: bool = False,
) -> list[Chain]:
    """Perfect chains: at least `min_steps` steps, every one rated right (Algorithm 1, line 5), one a problem.

    Parameters
    ----------
    source : {"champ", "prm800k", "jsonl", "synthetic"}
    path : str, optional
        What the source reads: see its module.
    min_steps : int
        The paper's N_min, 5.
    limit : int
        At most that many chains, by default the paper's 450; with `require`, exactly that many or an error.
    seed : int
        Of the sample, and of synthetic chains.
    human_steps : bool
        Let PRM800K trajectories in that contain a step written by the labeler, which nobody rated.

    Raises
    ------
    InputError
        If the source, its path or a record cannot be used, or if there is no chain at all.

    Examples
    --------
    >>> [chain.source for chain in load_chains("synthetic", limit=2)]
    ['synthetic', 'synthetic']
    """
    check_whole(min_steps=min_steps, limit=limit, seed=seed)
    module, dropped = sources.get(source), sources.Dropped()
    request = sources.Request(min_steps=min_steps, limit=limit, seed=seed, human_steps=human_steps)
    chains, _ = select_chains(module.read(module.inputs(path), request, dropped), limit=limit, seed=seed)
    check_reached(len(chains), limit, source, min_steps, require)
    return chains
