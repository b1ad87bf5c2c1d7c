"""The benchmark's items from a source's chains, and their files.

`build` makes everything in memory, `write` puts it down, `read` takes it up again. The manifest says what was
made from what: parameters, hashes of the inputs and of the files, counts, what was dropped and why.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from c2faith import negate, perturb, sources
from c2faith.chains import Draw, check_reached, check_whole, select_natural
from c2faith.perturb import ALPHA, BETA, Rational
from c2faith.records import (
    CausalityItem,
    Chain,
    CoverageItem,
    InputError,
    NaturalItem,
    dump,
    read_json,
    read_jsonl,
    rng,
    sha256,
    sha256_file,
    write_bytes,
    write_json,
)

RATES = ("0.1", "0.3", "0.5", "0.7")
_ROWS = {"chains": Chain, "causality": CausalityItem, "coverage": CoverageItem, "natural": NaturalItem}
_VERSIONED = ("c2faith", "champ-dataset", "numpy", "sympy")


@dataclass(frozen=True, slots=True)
class Dataset:
    """Chains, the items made from them, natural-error items, and the manifest."""

    chains: tuple[Chain, ...]
    causality: tuple[CausalityItem, ...]
    coverage: tuple[CoverageItem, ...]
    natural: tuple[NaturalItem, ...]
    manifest: dict[str, Any]


def build(
    source: str,
    *,
    path: str | None = None,
    min_steps: int = 5,
    limit: int = 450,
    require: bool = False,
    natural_limit: int = 450,
    human_steps: bool = False,
    seed: int = 0,
    alpha: Rational = ALPHA,
    beta: Rational = BETA,
    rates: Sequence[Rational] = RATES,
    nested: bool = False,
    negator: str = "rules",
    recorded: Path | None = None,
    complete: negate.Complete | None = None,
) -> Dataset:
    """Algorithm 1 on a source's perfect chains, with clean controls.

    Parameters
    ----------
    source, path, min_steps, limit, require, human_steps, seed
        As in `chains.load_chains`.
    natural_limit : int
        Natural-error items come from at most that many problems, at most two a problem, and no more correct
        solutions than wrong ones.
    alpha, beta : Fraction, str or float
        Bounds of the middle region, as shares of the chain's length.
    rates : sequence of Fraction, str or float
        Deletion rates in (0, 1]; a control with nothing removed is always added.
    nested : bool
        Let what a lower rate removes be a subset of what the next one removes.
    negator : {"rules", "recorded", "llm"}
        With `recorded`, the file to replay, and `complete`, the model to ask: see `negate.make`.

    Returns
    -------
    Dataset
        A chain without a valid negation has no causality item, and is counted in the manifest.
    """
    check_whole(min_steps=min_steps, limit=limit, natural_limit=natural_limit, seed=seed)
    levels = _levels(rates)
    region = {"alpha": _fraction("ALPHA", alpha), "beta": _fraction("BETA", beta)}
    module, dropped = sources.get(source), sources.Dropped()
    files = module.inputs(path)
    request = sources.Request(min_steps, limit, seed, human_steps, natural=True)
    draws: dict[type, Draw] = {Chain: Draw(seed), NaturalItem: Draw(seed, keep=2)}
    for found in module.read(files, request, dropped):
        draws[type(found)].add(found)
    chains = draws[Chain].sample(limit)
    check_reached(len(chains), limit, source, min_steps, require)
    natural = select_natural(draws[NaturalItem], natural_limit)

    maker = negate.make(negator, chains=chains, recorded_path=recorded, complete=complete)
    causality, unnegated = _causality(chains, maker, seed, region)
    coverage = [item for chain in chains for item in _coverage(chain, levels, nested, seed, region)]
    rows = dict(zip(_ROWS, map(tuple, (chains, causality, coverage, natural)), strict=True))
    inputs = files | ({f"negations/{Path(recorded).name}": Path(recorded)} if recorded else {})
    manifest = {
        "parameters": {
            "source": source,
            "min_steps": min_steps,
            "limit": limit,
            "natural_limit": natural_limit,
            "human_steps": human_steps,
            "seed": seed,
            **{name: str(bound) for name, bound in region.items()},
            "rates": [str(rate) for rate in levels],
            "nested": nested,
            "negator": negator,
        },
        "inputs": {name: sha256_file(file) for name, file in sorted(inputs.items())},
        "files": {f"{name}.jsonl": sha256(_lines(items)) for name, items in rows.items()},
        "counts": {
            "records": dropped.read,
            "steps": sum(len(chain.steps) for chain in chains),
            **{name: len(items) for name, items in rows.items()},
            "natural_wrong": sum(item.first_error >= 0 for item in natural),
        },
        "dropped": {
            "chains": dict(dropped.chains + draws[Chain].dropped),
            "natural": dict(dropped.natural + draws[NaturalItem].dropped),
            "causality": dict(unnegated),
        },
        "rejected_negations": dict(maker.rejections),
        "versions": _versions(),
    }
    return Dataset(**rows, manifest=manifest)


def _levels(rates: Iterable[Rational]) -> list[Fraction]:
    levels = [Fraction(0), *(_fraction("RATES", rate) for rate in rates)]
    if sorted(set(levels)) != levels:
        raise InputError(f"RATES={', '.join(map(str, rates))}: must rise from above 0 to at most 1")
    return levels


def _fraction(name: str, value: Rational) -> Fraction:
    """A share exactly as it is written: 0.3 is 3/10."""
    try:
        share = Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{name}={value}: is no number such as 0.3 or 3/10") from None
    if not 0 <= share <= 1:
        raise InputError(f"{name}={value}: must lie between 0 and 1")
    return share


def _causality(
    chains: Sequence[Chain], negator: negate.Negator, seed: int, region: Mapping[str, Fraction]
) -> tuple[list[CausalityItem], Counter[str]]:
    items, dropped = [], Counter()

    def drawn(chain: Chain) -> np.random.Generator:
        return rng(seed, "causality", chain.chain_id)

    if isinstance(negator, negate.LlmNegator):
        tried = ((chain, perturb.targets(chain, drawn(chain), **region)) for chain in chains)
        negator.expect((chain, targets[0]) for chain, targets in tried if targets)
    for chain in chains:
        try:
            items.append(perturb.replace_step(chain, negator, drawn(chain), **region))
        except perturb.NoNegation:
            dropped["no valid negation"] += 1
    return items, dropped


def _coverage(
    chain: Chain, levels: Sequence[Fraction], nested: bool, seed: int, region: Mapping[str, Fraction]
) -> list[CoverageItem]:
    words = ("coverage", chain.chain_id)
    if nested:
        return perturb.delete_nested(chain, levels, rng(seed, *words), **region)
    return [perturb.delete_steps(chain, level, rng(seed, *words, str(level)), **region) for level in levels]


def _lines(rows: Iterable[Any]) -> bytes:
    return b"".join(dump(row) + b"\n" for row in rows)


def _versions() -> dict[str, str]:
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in _VERSIONED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def write(dataset: Dataset, folder: Path) -> None:
    """Write the rows' files, and the manifest last: until it is there, `read` refuses the folder's new files."""
    for name in _ROWS:
        write_bytes(folder / f"{name}.jsonl", _lines(getattr(dataset, name)))
    write_json(folder / "manifest.json", dataset.manifest)


def read(folder: Path) -> Dataset:
    """What `write` wrote, checked against its manifest.

    Raises
    ------
    InputError
        If there is no dataset, a row is broken, or a file is not the one that the manifest describes.
    """
    if not (folder / "manifest.json").exists():
        raise InputError(f"{folder}: no dataset here; build it first (make data RUN={folder.name})")
    manifest = read_json(folder / "manifest.json")
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(files, dict) or not {f"{name}.jsonl" for name in _ROWS} <= files.keys():
        raise InputError(f"{folder / 'manifest.json'}: no manifest of a dataset; build the run again")
    rows = {name: tuple(read_jsonl(folder / f"{name}.jsonl", row_type)) for name, row_type in _ROWS.items()}
    for name in _ROWS:
        if sha256_file(folder / f"{name}.jsonl") != files[f"{name}.jsonl"]:
            raise InputError(f"{folder / name}.jsonl: changed since its manifest was written; build the run again")
    return Dataset(**rows, manifest=manifest)


def compare_with_recorded(dataset: Dataset, path: Path) -> str:
    """Whether a dataset is, byte for byte, the one that the recorded manifest at `path` describes; in words.

    Raises
    ------
    InputError
        If the parameters are the recorded ones and a file is not.
    """
    if not path.exists():
        return "No dataset is recorded for this run."
    recorded = read_json(path)
    ours = dataset.manifest
    if other := [name for name, value in ours["parameters"].items() if recorded["parameters"].get(name) != value]:
        return f"The recorded dataset has other parameters ({', '.join(other)}): its replies are to other items."
    for part in ("inputs", "files"):
        if changed := [name for name, found in ours[part].items() if recorded[part].get(name) != found]:
            raise InputError(
                f"{path}: the same parameters gave another {', '.join(changed)}; build it as another RUN"
            )
    return f"All {len(ours['files'])} files are, byte for byte, the recorded ones."
