"""Record a run for good: its items, the settled replies to them, and the judge that was trained on them."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from c2faith import dataset, paths
from c2faith.judging import replies, tasks
from c2faith.records import InputError, dump, read_json, sha256_file, write_bytes, write_json

VERSIONED = ("c2faith", "numpy", "openai", "sympy", "torch", "transformers")
TRAINED = (
    "config.json",
    "figures.json",
    "log.jsonl",
    "head-*.safetensors",
    "adapter/*.json",
    "adapter/*.safetensors",
)


def freeze(run: str, judges: Sequence[str] = ()) -> list[Path]:
    """Copy a run's items and the settled replies of its judges to `data/frozen/<run>`.

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
    rows = dataset.of_run(run)
    if (source / "manifest.json").exists() and dataset.read(source).manifest["files"] != rows.manifest["files"]:
        raise InputError(f"{target}: holds replies to another dataset; record this one under another RUN")
    chosen = judges or sorted(path.parent.name for path in source.glob("replies/*/judge.json"))
    record = read_json(target / "record.json") if (target / "record.json").exists() else {}
    # All judges are looked through before anything is written.
    new = {paths.judge_name(judge_id): _to_record(rows, run, judge_id, record.get(judge_id)) for judge_id in chosen}
    written = []
    for judge_id, journals in new.items():
        kept, known, files = replies.judge_folder(target, judge_id), record.get(judge_id), {}
        for name, rows_of in journals.items():
            write_bytes(kept / name, b"".join(dump(row) + b"\n" for row in rows_of))
            files[name] = sha256_file(kept / name)
            written.append(kept / name)
        pinned = replies.read_pin(replies.judge_folder(source, judge_id))
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
    if not dataset.is_recorded(target):
        written += dataset.write(rows, target, packed=True)
    write_json(target / "record.json", record)
    return written


def _to_record(
    rows: dataset.Dataset, run: str, judge_id: str, known: dict[str, Any] | None
) -> dict[str, list[dict[str, Any]]]:
    """The rows of a judge's journals that are not recorded yet, by file name, if all of them can be."""
    folder, target = replies.judge_folder(paths.run_dir(run), judge_id), paths.frozen_dir(run)
    pinned = replies.read_pin(folder)
    names = [
        path.name for path in sorted(folder.glob("*.jsonl")) if known is None or path.name not in known["files"]
    ]
    if known and not names:
        raise InputError(f"{target}: {judge_id} is recorded already, and records are never rewritten")
    if known and replies.read_pin(replies.judge_folder(target, judge_id))["fingerprint"] != pinned["fingerprint"]:
        raise InputError(f"{target}: {judge_id} was recorded as another model; give this one another name")
    found = {}
    for name in names:
        found[name] = list(replies.read(folder / name))
        final = {replies.key(row) for row in found[name] if replies.is_final(row)}
        items = tasks.items(rows, name.removesuffix(".jsonl"))
        if pending := sum(item.query(pinned["fingerprint"]).key not in final for item in items):
            raise InputError(f"{folder / name}: {pending} items are pending; finish the run before recording it")
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
    asked = [name.removesuffix(".jsonl") for name in files]
    named = "" if set(asked) <= set(tasks.default()) else f" TASKS={','.join(asked)}"
    return f"make judge RUN={run} JUDGE={judge_id}{named}"


def _versions() -> dict[str, str]:
    found = {}
    for name in VERSIONED:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {"python": platform.python_version(), **found}
