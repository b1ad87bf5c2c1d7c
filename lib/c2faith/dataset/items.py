"""The benchmark's items from a source's chains, and their files.

`build` makes everything in memory, `write` puts it down. `of_run` takes a run's items up again: those recorded
beside its replies, if it is recorded, else those that were built. The manifest says what was made from what:
parameters, hashes of the inputs and of the files, counts, what was dropped and why.
"""

from __future__ import annotations

import gzip
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from c2faith import paths
from c2faith.dataset import negate, perturb, sources
from c2faith.dataset.chains import Draw, check_reached, check_whole, select_natural
from c2faith.dataset.perturb import ALPHA, BETA, Rational
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
        negator.ask((chain, perturb.targets(chain, drawn(chain), **region)) for chain in chains)
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


def write(dataset: Dataset, folder: Path, *, packed: bool = False) -> list[Path]:
    """Write the rows' files (`packed`: gzipped), and the manifest last: without it `read` refuses the folder.

    Returns
    -------
    list of Path
        What was written. The hashes in the manifest are of the rows as plain JSON lines, packed or not.
    """
    written = []
    for name in _ROWS:
        lines, path = _lines(getattr(dataset, name)), folder / f"{name}.jsonl"
        if packed:
            lines, path = gzip.compress(lines, mtime=0), folder / f"{name}.jsonl.gz"
        write_bytes(path, lines)
        written.append(path)
    write_json(folder / "manifest.json", dataset.manifest)
    return [*written, folder / "manifest.json"]


def of_run(run: str) -> Dataset:
    """A run's items: the recorded ones, to which its recorded replies are, or those that were built."""
    recorded = paths.frozen_dir(run)
    return read(recorded if is_recorded(recorded) else paths.run_dir(run))


def is_recorded(folder: Path) -> bool:
    """Whether a folder of recorded replies holds the items that they are replies to."""
    return all((folder / f"{name}.jsonl.gz").exists() for name in _ROWS)


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
    rows = {}
    for name, row_type in _ROWS.items():
        packed = folder / f"{name}.jsonl.gz"
        path = packed if packed.exists() else folder / f"{name}.jsonl"
        rows[name] = tuple(read_jsonl(path, row_type))
        if sha256(_lines(rows[name])) != files[f"{name}.jsonl"]:
            raise InputError(f"{path}: changed since its manifest was written; build the run again")
    return Dataset(**rows, manifest=manifest)


def rebuild(recorded: Mapping[str, Any], path: str | None = None) -> Dataset:
    """The dataset that today's code makes with the parameters of a recorded manifest; `path` as of `build`."""
    parameters = dict(recorded["parameters"])
    return build(path=path, **parameters | {"rates": parameters["rates"][1:]})


def differing(built: Dataset, recorded: Mapping[str, Any]) -> list[str]:
    """The inputs and files of a dataset that are not, byte for byte, those of a recorded manifest.

    Raises
    ------
    InputError
        If the parameters are not the recorded ones: then it is another run.
    """
    ours = built.manifest
    if other := [name for name, value in ours["parameters"].items() if recorded["parameters"].get(name) != value]:
        raise InputError(f"the run is recorded with another {', '.join(other)}; name a RUN of its own for this one")
    return [
        name
        for part in ("inputs", "files")
        for name, found in ours[part].items()
        if recorded[part].get(name) != found
    ]


def compare_with_recorded(built: Dataset, run: str) -> str:
    """Whether a dataset is, byte for byte, the one that is recorded for a run; in words."""
    path = paths.frozen_dir(run) / "manifest.json"
    if not path.exists():
        return "No dataset is recorded for this run."
    if changed := differing(built, read_json(path)):
        return (
            f"{', '.join(changed)}: not as recorded. Judges, tables and figures of {run} stay with those items; "
            "to use what was built now, build it as another RUN."
        )
    return f"All {len(built.manifest['files'])} files are, byte for byte, the recorded ones."
