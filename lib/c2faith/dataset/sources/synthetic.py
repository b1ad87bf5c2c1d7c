"""Arithmetic and algebra chains whose every step is checked by construction; as many as asked for.

Chain number k depends on the seed and k alone: a larger limit only adds chains.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from c2faith.dataset.sources.base import Dropped, Request, chain, no_path
from c2faith.dataset.sources.families import FAMILIES, MAX_STEPS
from c2faith.records import Chain, InputError, rng


def inputs(path: str | None) -> dict[str, Path]:
    """Nothing is read."""
    no_path(path, "synthetic")
    return {}


def read(files: Mapping[str, Path], request: Request, dropped: Dropped) -> Iterator[Chain]:
    """`request.limit` chains of different problems, families in turn by chance."""
    if request.min_steps > MAX_STEPS:
        raise InputError(f"MIN_STEPS={request.min_steps}: synthetic chains have at most {MAX_STEPS} steps")
    problems: set[str] = set()
    while len(problems) < request.limit:
        made = numbered(request.seed, dropped.read)
        dropped.read += 1
        if len(made.steps) < request.min_steps:
            dropped.chains["too few steps"] += 1
        elif made.problem_id in problems:
            dropped.chains["problem made before"] += 1
        else:
            problems.add(made.problem_id)
            yield made


def numbered(seed: int, index: int) -> Chain:
    """Chain number `index` of that seed."""
    generator = rng(seed, "synthetic", str(index))
    family = FAMILIES[int(generator.integers(len(FAMILIES)))]
    question, steps, answer = family(generator)
    return chain("synthetic", question, steps, answer=answer)
