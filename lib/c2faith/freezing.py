"""Record a run for good, and verify that tables made again are the recorded ones."""

from __future__ import annotations

import csv
import importlib.metadata
import math
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from c2faith import dataset, journal, judging, paths
from c2faith.frames import SCORED
from c2faith.plan import plan
from c2faith.records import InputError, dump, read_json, sha256_file, write_bytes, write_json

VERSIONED = ("c2faith", "numpy", "openai", "sympy", "torch", "transformers")
RELATIVE, ABSOLUTE = 1e-6, 1e-9
TRAINED = ("config.json", "log.jsonl", "head-*.safetensors", "adapter/*.json", "adapter/*.safetensors")


def freeze(run: str, judges: Sequence[str] = ()) -> list[Path]:
    """Copy a run's manifest and the settled replies of its judges to `data/frozen/<run>`.

    What is recorded is never rewritten: of a judge that is there already only tasks that it was not asked before
    are added. With the replies of a judge that was trained on the run goes the judge itself, to
    `data/frozen/<run>/cros`. `record.json` says of each judge which command made its replies, on what, and the
    hash of each file; what came later stands under ``added``.

    Raises
    ------
    InputError
        If a judge has items pending, is recorded with all its tasks already, or was another one then.
    """
    source, target = paths.run_dir(run), paths.frozen_dir(run)
    rows = dataset.read(source)
    manifest = (source / "manifest.json").read_bytes()
    if (target / "manifest.json").exists() and (target / "manifest.json").read_bytes() != manifest:
        raise InputError(f"{target}: holds replies to another dataset; record this one under another RUN")
    chosen = judges or sorted(path.parent.name for path in source.glob("replies/*/judge.json"))
    record = read_json(target / "record.json") if (target / "record.json").exists() else {}
    # All judges are looked through before anything is written.
    new = {paths.judge_name(judge_id): _to_record(rows, run, judge_id, record.get(judge_id)) for judge_id in chosen}
    written = []
    for judge_id, journals in new.items():
        kept, known, files = target / "replies" / judge_id, record.get(judge_id), {}
        for name, replies in journals.items():
            write_bytes(kept / name, b"".join(dump(row) + b"\n" for row in replies))
            files[name] = sha256_file(kept / name)
            written.append(kept / name)
        pinned = judging.read_pin(source / "replies" / judge_id)
        command = _command(run, judge_id, files)
        made = {"command": command, "versions": _versions(), "processor": platform.machine()}
        if pinned.get("provider") == "cros":
            copies = _copy_trained(source / "cros", target / "cros")
            made["trained"] = {str(copy.relative_to(target / "cros")): sha256_file(copy) for copy in copies}
            written += copies
        if known:
            known["added"] = [*known.get("added", []), {**made, "files": sorted(files)}]
            known["files"] |= files
        else:
            write_json(kept / "judge.json", pinned)
            record[judge_id] = {**made, "files": files}
    write_bytes(target / "manifest.json", manifest)
    write_json(target / "record.json", record)
    return written


def _to_record(
    rows: dataset.Dataset, run: str, judge_id: str, known: dict[str, Any] | None
) -> dict[str, list[dict[str, Any]]]:
    """The rows of a judge's journals that are not recorded yet, by file name, if all of them can be."""
    folder, target = paths.run_dir(run) / "replies" / judge_id, paths.frozen_dir(run)
    pinned = judging.read_pin(folder)
    names = [
        path.name for path in sorted(folder.glob("*.jsonl")) if known is None or path.name not in known["files"]
    ]
    if known and not names:
        raise InputError(f"{target}: {judge_id} is recorded already, and records are never rewritten")
    if known and judging.read_pin(target / "replies" / judge_id)["fingerprint"] != pinned["fingerprint"]:
        raise InputError(f"{target}: {judge_id} was recorded as another model; give this one another name")
    found = {}
    for name in names:
        task = name.removesuffix(".jsonl")
        settled = {key for key, row in journal.latest(folder / name).items() if journal.is_final(row)}
        items = [item.query(pinned["fingerprint"]) for item in plan(rows, task)]
        if pending := sum((query.item_id, query.prompt_sha256) not in settled for query in items):
            raise InputError(f"{folder / name}: {pending} items are pending; finish the run before recording it")
        found[name] = list(journal.read(folder / name))
    return found


def _copy_trained(source: Path, target: Path) -> list[Path]:
    """A trained judge's heads, settings and log, unless they are recorded already."""
    files = [path for pattern in TRAINED for path in sorted(source.glob(pattern))]
    if target.exists() or not files:
        return []
    for path in files:
        write_bytes(target / path.relative_to(source), path.read_bytes())
    return [target / path.relative_to(source) for path in files]


def _command(run: str, judge_id: str, files: Iterable[str]) -> str:
    """What makes these replies again; tasks are named where some are asked on request only."""
    tasks = [name.removesuffix(".jsonl") for name in files]
    named = "" if set(tasks) <= set(SCORED) else f" TASKS={','.join(tasks)}"
    return f"make judge RUN={run} JUDGE={judge_id}{named}"


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
