"""Sources → chains → perturbed items (Algorithm 1): all that a judge is asked about, and the files it lives in.

A dataset's manifest says what was made from what: parameters, hashes of inputs and files, counts, what was dropped
and why. Its rows' files are plain or packed (gzipped); hashes are of the unpacked bytes.
"""

from __future__ import annotations

import gzip
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from c2faith import paths, records
from c2faith.dataset import negate, perturb
from c2faith.dataset.chains import Request, select
from c2faith.dataset.perturb import ALPHA, BETA, Rational
from c2faith.records import CausalityItem, Chain, CoverageItem, InputError, NaturalItem, rng, sha256, sha256_file

RATES = ("0.1", "0.3", "0.5", "0.7")
ROWS = {"chains": Chain, "causality": CausalityItem, "coverage": CoverageItem, "natural": NaturalItem}


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
    require: bool = False,
    alpha: Rational = ALPHA,
    beta: Rational = BETA,
    rates: Sequence[Rational] = RATES,
    nested: bool = False,
    negator: str = "rules",
    recorded: Path | None = None,
    complete: negate.Complete | None = None,
    **asked: Any,
) -> Dataset:
    """Algorithm 1 on a source's perfect chains, with clean controls; a chain without a valid negation has none.

    Parameters
    ----------
    alpha, beta
        Bounds of the middle region, as shares of the chain's length.
    rates
        Deletion rates in (0, 1]; a control with nothing removed is always added.
    nested
        Let what a lower rate removes be a subset of what the next one removes.
    negator, recorded, complete
        As of `negate.make`.
    asked
        Fields of `chains.Request`.
    """
    request = Request(**asked, natural=True)
    levels = [Fraction(0), *(perturb.share(rate, "RATES") for rate in rates)]
    if sorted(set(levels)) != levels:
        raise InputError(f"RATES={', '.join(map(str, rates))}: must rise from above 0 to at most 1")
    region = {"alpha": perturb.share(alpha, "ALPHA"), "beta": perturb.share(beta, "BETA")}
    chains, natural, files, dropped = select(source, request, path=path, require=require)
    maker = negate.make(negator, chains=chains, recorded_path=recorded, complete=complete)
    causality = _causality(chains, maker, request.seed, region)
    coverage = []
    for chain in chains:
        words = (request.seed, "coverage", chain.chain_id)
        if nested:
            coverage += perturb.delete_nested(chain, levels, rng(*words), **region)
        else:
            coverage += [perturb.delete_steps(chain, level, rng(*words, str(level)), **region) for level in levels]
    rows = dict(zip(ROWS, map(tuple, (chains, causality, coverage, natural)), strict=True))
    inputs = files | ({f"negations/{Path(recorded).name}": Path(recorded)} if recorded else {})
    unnegated = len(chains) - len(causality)
    manifest = {
        "parameters": {
            "source": source,
            **{name: value for name, value in asdict(request).items() if name != "natural"},
            **{name: str(bound) for name, bound in region.items()},
            "rates": [str(rate) for rate in levels],
            "nested": nested,
            "negator": negator,
        },
        "inputs": {name: sha256_file(file) for name, file in sorted(inputs.items())},
        "files": {f"{name}.jsonl": sha256(records.dump_lines(items)) for name, items in rows.items()},
        "counts": {
            "records": dropped.read,
            "steps": sum(len(chain.steps) for chain in chains),
            **{name: len(items) for name, items in rows.items()},
            "natural_wrong": sum(item.first_error >= 0 for item in natural),
        },
        "dropped": {
            "chains": dict(dropped.chains),
            "natural": dict(dropped.natural),
            "causality": {"no valid negation": unnegated} if unnegated else {},
        },
        "rejected_negations": dict(maker.rejections),
        "versions": _versions(),
    }
    return Dataset(**rows, manifest=manifest)


def _causality(
    chains: Sequence[Chain], negator: negate.Negator, seed: int, region: Mapping[str, Fraction]
) -> list[CausalityItem]:
    draws = [(chain, lambda chain=chain: rng(seed, "causality", chain.chain_id)) for chain in chains]
    if isinstance(negator, negate.LlmNegator):
        negator.ask((chain, perturb.targets(chain, draw(), **region)) for chain, draw in draws)
    items = []
    for chain, draw in draws:
        with suppress(perturb.NoNegation):
            items.append(perturb.replace_step(chain, negator, draw(), **region))
    return items


def _versions() -> dict[str, str]:
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in ("c2faith", "champ-dataset", "numpy", "sympy"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def rebuild(recorded: Mapping[str, Any], path: str | None = None) -> Dataset:
    """The dataset that today's code makes with the parameters of a recorded manifest; `path` as of `build`."""
    parameters = recorded["parameters"]
    return build(path=path, **parameters | {"rates": parameters["rates"][1:]})


def write(dataset: Dataset, folder: Path, *, packed: bool = False) -> list[Path]:
    """Write the rows' files, and the manifest last: without it `read` refuses the folder."""
    files = [folder / f"{name}.jsonl{'.gz' if packed else ''}" for name in ROWS]
    for name, path in zip(ROWS, files, strict=True):
        content = records.dump_lines(getattr(dataset, name))
        records.write_bytes(path, gzip.compress(content, mtime=0) if packed else content)
    records.write_json(folder / "manifest.json", dataset.manifest)
    return [*files, folder / "manifest.json"]


def read(folder: Path) -> Dataset:
    """What `write` wrote; an `InputError` says what is missing, broken or not as its manifest describes it."""
    path = folder / "manifest.json"
    if not path.exists():
        raise InputError(f"{folder}: no dataset here; build it first (make data RUN={folder.name})")
    manifest = records.read_json(path)
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(files, dict) or not {f"{name}.jsonl" for name in ROWS} <= files.keys():
        raise InputError(f"{path}: no manifest of a dataset; build the run again")
    rows = {}
    for name, row_type in ROWS.items():
        packed = folder / f"{name}.jsonl.gz"
        path = packed if packed.exists() else folder / f"{name}.jsonl"
        rows[name] = tuple(records.read_jsonl(path, row_type))
        if sha256(records.dump_lines(rows[name])) != files[f"{name}.jsonl"]:
            raise InputError(f"{path}: changed since its manifest was written; build the run again")
    return Dataset(**rows, manifest=manifest)


def is_recorded(folder: Path) -> bool:
    """Whether a folder of recorded replies holds the items that they are replies to."""
    return all((folder / f"{name}.jsonl.gz").exists() for name in ROWS)


def of_run(run: str) -> Dataset:
    """A run's items: the recorded ones, to which its recorded replies are, or those that were built."""
    recorded = paths.frozen_dir(run)
    return read(recorded if is_recorded(recorded) else paths.run_dir(run))


def differing(built: Dataset, recorded: Mapping[str, Any]) -> list[str]:
    """The inputs and files that are not, byte for byte, those of a recorded manifest of the same parameters."""
    ours = built.manifest
    if other := [name for name, value in ours["parameters"].items() if recorded["parameters"].get(name) != value]:
        raise InputError(f"the run is recorded with another {', '.join(other)}; name a RUN of its own for this one")
    parts = ("inputs", "files")
    return [name for part in parts for name, digest in ours[part].items() if recorded[part].get(name) != digest]


def compare_with_recorded(built: Dataset, run: str) -> str:
    """Whether a dataset is, byte for byte, the one that is recorded for a run; in words."""
    path = paths.frozen_dir(run) / "manifest.json"
    if not path.exists():
        return "No dataset is recorded for this run."
    if changed := differing(built, records.read_json(path)):
        return (
            f"{', '.join(changed)}: not as recorded. Judges, tables and figures of {run} stay with those items; "
            "to use what was built now, build it as another RUN."
        )
    return f"All {len(built.manifest['files'])} files are, byte for byte, the recorded ones."
