"""A run's items and their files, packed or plain, with the manifest that names their bytes."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c2faith import paths, records
from c2faith.records import CausalityItem, Chain, CoverageItem, InputError, NaturalItem

ROWS = {"chains": Chain, "causality": CausalityItem, "coverage": CoverageItem, "natural": NaturalItem}


@dataclass(frozen=True, slots=True)
class Dataset:
    """Chains, the items made from them, natural-error items, and the manifest."""

    chains: tuple[Chain, ...]
    causality: tuple[CausalityItem, ...]
    coverage: tuple[CoverageItem, ...]
    natural: tuple[NaturalItem, ...]
    manifest: dict[str, Any]


def lines(rows: Iterable[Any]) -> bytes:
    """Rows as canonical JSON lines: the bytes that a manifest's hashes are of, packed or not."""
    return b"".join(records.dump(row) + b"\n" for row in rows)


def write(dataset: Dataset, folder: Path, *, packed: bool = False) -> list[Path]:
    """Write the rows' files (`packed`: gzipped), and the manifest last: without it `read` refuses the folder."""
    written = []
    for name in ROWS:
        content, path = lines(getattr(dataset, name)), folder / f"{name}.jsonl"
        if packed:
            content, path = gzip.compress(content, mtime=0), folder / f"{name}.jsonl.gz"
        records.write_bytes(path, content)
        written.append(path)
    records.write_json(folder / "manifest.json", dataset.manifest)
    return [*written, folder / "manifest.json"]


def is_recorded(folder: Path) -> bool:
    """Whether a folder of recorded replies holds the items that they are replies to."""
    return all((folder / f"{name}.jsonl.gz").exists() for name in ROWS)


def of_run(run: str) -> Dataset:
    """A run's items: the recorded ones, to which its recorded replies are, or those that were built."""
    recorded = paths.frozen_dir(run)
    return read(recorded if is_recorded(recorded) else paths.run_dir(run))


def read(folder: Path) -> Dataset:
    """What `write` wrote, checked against its manifest.

    Raises
    ------
    InputError
        If there is no dataset, a row is broken, or a file is not the one that the manifest describes.
    """
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
        if records.sha256(lines(rows[name])) != files[f"{name}.jsonl"]:
            raise InputError(f"{path}: changed since its manifest was written; build the run again")
    return Dataset(**rows, manifest=manifest)


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
