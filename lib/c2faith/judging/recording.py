"""Record a run for good: its items, the settled replies to them, and the judge that was trained on them."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from c2faith import dataset, paths
from c2faith.judging import replies, tasks
from c2faith.records import InputError, dump, read_json, sha256_file, write_bytes, write_json

VERSIONED = ("c2faith", "numpy", "openai", "sympy", "torch", "transformers")
TRAINED = (
    *("config.json", "figures.json", "log.jsonl"),
    *("head-*.safetensors", "adapter/*.json", "adapter/*.safetensors"),
)


def freeze(run: str, judges: Sequence[str] = ()) -> list[Path]:
    """Copy a run's items and the settled replies of its judges to `data/frozen/<run>`.

    What is recorded is never rewritten: of a judge that is there already only tasks that it was not asked before
    are added. A judge that was trained on the run goes to `data/frozen/<run>/cros`. `record.json` says of each
    judge which command made its replies, on what, and the hash of each file; what came later is under ``added``.
    An `InputError` if a judge has items pending, is recorded with all its tasks already, or was another one then.
    """
    target, source = replies.folders(run)
    rows = dataset.of_run(run)
    if (source / "manifest.json").exists() and dataset.read(source).manifest["files"] != rows.manifest["files"]:
        raise InputError(f"{target}: holds replies to another dataset; record this one under another RUN")
    chosen = judges or sorted({path.parent.name for path in source.glob("replies/*/*.jsonl")})
    record = read_json(target / "record.json") if (target / "record.json").exists() else {}
    # All judges are looked through before anything is written.
    new = {judge: _to_record(rows, run, paths.judge_name(judge), record.get(judge)) for judge in chosen}
    versions = {package.name: package.version for package in distributions() if package.name in VERSIONED}
    versions["python"] = platform.python_version()
    written = []
    for judge, journals in new.items():
        kept, pinned = replies.judge_folder(target, judge), replies.read_pin(replies.judge_folder(source, judge))
        for name, found in journals.items():
            write_bytes(kept / name, b"".join(dump(row) + b"\n" for row in found))
            written.append(kept / name)
        files = {name: sha256_file(kept / name) for name in journals}
        asked = [name.removesuffix(".jsonl") for name in files]
        # Tasks are named where some are asked on request only.
        named = "" if set(asked) <= set(tasks.default()) else f" TASKS={','.join(asked)}"
        command = f"make judge RUN={run} JUDGE={judge}{named}"
        made = {"command": command, "versions": versions, "processor": platform.machine()}
        if pinned.get("provider") == "cros":
            copies = _copy_trained(source / "cros", target / "cros")
            made["trained"] = {str(copy.relative_to(target / "cros")): sha256_file(copy) for copy in copies}
            written += copies
        if known := record.get(judge):
            known["added"] = [*known.get("added", []), {**made, "files": sorted(files)}]
            known["files"] |= files
        else:
            write_json(kept / "judge.json", pinned)
            record[judge] = {**made, "files": files}
    if not dataset.is_recorded(target):
        written += dataset.write(rows, target, packed=True)
    write_json(target / "record.json", record)
    return written


def _to_record(
    rows: dataset.Dataset, run: str, judge: str, known: dict[str, Any] | None
) -> dict[str, list[replies.Row]]:
    # The rows of a judge's journals that are not recorded yet, by file name, if all of them can be.
    target, folder = (replies.judge_folder(place, judge) for place in replies.folders(run))
    fingerprint = replies.read_pin(folder)["fingerprint"]
    found = {path.name: list(replies.read(path)) for path in sorted(folder.glob("*.jsonl"))}
    new = {name: kept for name, kept in found.items() if kept and name not in (known or {}).get("files", ())}
    if not new:
        why = "is recorded already, and records are never rewritten" if known else "has no replies to record"
        raise InputError(f"{paths.frozen_dir(run)}: {judge} {why}")
    if known and replies.read_pin(target)["fingerprint"] != fingerprint:
        where = paths.frozen_dir(run)
        raise InputError(f"{where}: {judge} was recorded as another model; give this one another name")
    for name, kept in new.items():
        settled = replies.settled(kept)
        items = tasks.items(rows, name.removesuffix(".jsonl"))
        if pending := sum(item.query(fingerprint).key not in settled for item in items):
            raise InputError(f"{folder / name}: {pending} items are pending; finish the run before recording it")
    return new


def _copy_trained(source: Path, target: Path) -> list[Path]:
    files = [path for pattern in TRAINED for path in sorted(source.glob(pattern))]
    copies = [target / path.relative_to(source) for path in files if not target.exists()]
    for path, copy in zip(files, copies, strict=False):
        write_bytes(copy, path.read_bytes())
    return copies
