"""Record a run for good, and verify that tables made again are the recorded ones."""

from __future__ import annotations

import csv
import importlib.metadata
import math
import platform
from collections.abc import Sequence
from pathlib import Path

from c2faith import journal, judging, paths
from c2faith.records import InputError, dump, read_json, sha256_file, write_bytes, write_json

VERSIONED = ("c2faith", "numpy", "openai", "sympy", "torch", "transformers")
RELATIVE, ABSOLUTE = 1e-6, 1e-9
TRAINED = ("config.json", "log.jsonl", "head-*.safetensors", "adapter/*.json", "adapter/*.safetensors")


def freeze(run: str, judges: Sequence[str] = ()) -> list[Path]:
    """Copy a run's manifest and the settled replies of its judges to `data/frozen/<run>`.

    With the replies of a judge that was trained on the run goes the judge itself, to `data/frozen/<run>/cros`.
    What is recorded is never rewritten: a judge that is there already is refused. `record.json` says of each
    judge which command made its replies, on what, and the hash of each file.

    Raises
    ------
    InputError
        If a judge has items pending, or is recorded already.
    """
    source, target = paths.run_dir(run), paths.frozen_dir(run)
    manifest = (source / "manifest.json").read_bytes()
    if (target / "manifest.json").exists() and (target / "manifest.json").read_bytes() != manifest:
        raise InputError(f"{target}: holds replies to another dataset; record this one under another RUN")
    chosen = judges or sorted(path.parent.name for path in source.glob("replies/*/judge.json"))
    record = read_json(target / "record.json") if (target / "record.json").exists() else {}
    written = []
    for judge_id in chosen:
        if judge_id in record:
            raise InputError(f"{target}: {judge_id} is recorded already, and records are never rewritten")
        folder = source / "replies" / judge_id
        pinned = judging.read_pin(folder)
        files = {}
        for path in sorted(folder.glob("*.jsonl")):
            rows = list(journal.read(path))
            last = {(row["item_id"], row["prompt_sha256"]): row for row in rows}
            if pending := sum(not journal.is_final(row) for row in last.values()):
                raise InputError(f"{path}: {pending} items are pending; finish the run before recording it")
            copy = target / "replies" / judge_id / path.name
            write_bytes(copy, b"".join(dump(row) + b"\n" for row in rows))
            files[path.name] = sha256_file(copy)
            written.append(copy)
        write_json(target / "replies" / judge_id / "judge.json", pinned)
        if pinned.get("provider") == "cros":
            copies = _copy_trained(source / "cros", target / "cros")
            files |= {f"cros/{copy.relative_to(target / 'cros')}": sha256_file(copy) for copy in copies}
            written += copies
        record[judge_id] = {
            "command": f"make judge RUN={run} JUDGE={judge_id}",
            "files": files,
            "versions": _versions(),
            "processor": platform.machine(),
        }
    write_bytes(target / "manifest.json", manifest)
    write_json(target / "record.json", record)
    return written


def _copy_trained(source: Path, target: Path) -> list[Path]:
    """A trained judge's heads, settings and log, unless they are recorded already."""
    files = [path for pattern in TRAINED for path in sorted(source.glob(pattern))]
    if target.exists() or not files:
        return []
    for path in files:
        write_bytes(target / path.relative_to(source), path.read_bytes())
    return [target / path.relative_to(source) for path in files]


def verify(run: str, regenerated: Path) -> str:
    """Compare the committed tables of a run with those made again.

    Numbers may differ by rounding in the last places (relative 1e-6), nothing else may.

    Returns
    -------
    str
        What was compared.

    Raises
    ------
    InputError
        Naming the first cell that differs, or the missing table.
    """
    committed = paths.ROOT / "figures" / paths.run_name(run)
    tables = sorted(committed.glob("*.csv"))
    if not tables:
        raise InputError(f"{committed}: no committed tables to compare with")
    cells = 0
    for table in tables:
        again = Path(regenerated) / table.name
        if not again.exists():
            raise InputError(f"{again}: was not made again")
        cells += _compare(table, again)
    return f"{len(tables)} tables, {cells} cells: the same"


def _compare(table: Path, again: Path) -> int:
    old, new = (list(csv.reader(path.open(newline="", encoding="utf-8"))) for path in (table, again))
    if [len(row) for row in old] != [len(row) for row in new]:
        raise InputError(f"{again}: not the shape of {table}")
    for number, (left, right) in enumerate(zip(old, new, strict=True), start=1):
        for name, a, b in zip(old[0], left, right, strict=True):
            if not _same(a, b):
                raise InputError(f"{again}, line {number}, column {name}: {b!r}, committed {a!r}")
    return sum(map(len, old))


def _same(a: str, b: str) -> bool:
    if a == b:
        return True
    try:
        return math.isclose(float(a), float(b), rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    except ValueError:
        return False


def _versions() -> dict[str, str]:
    found = {}
    for name in VERSIONED:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {"python": platform.python_version(), **found}
