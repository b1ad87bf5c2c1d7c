"""Is everything committed what today's code makes of what was recorded? Items, replies, tables, figures, report."""

from __future__ import annotations

import io
import math
import re
import zlib
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.image import imread

from c2faith import dataset, paths
from c2faith.records import InputError, read_json, sha256_file

RELATIVE, ABSOLUTE = 1e-6, 1e-9
PIXEL, PIXELS = 0.1, 0.002  # a pixel counts as another from this difference on; so large a share of them may
MOST_NAMED = 10
SEEDED = ("champ", "synthetic")
"""Sources whose items need no file of the user's to be built again."""
_NUMBER = re.compile(r"(?<![\w.])[-−+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def verify(run: str, again: Path, source_path: str | None = None) -> list[str]:
    """Compare what is committed of a run, and of the paper's audit, with what was made again elsewhere.

    Numbers may differ by rounding in the last places (relative 1e-6), pictures by the faint edge of a line. What is
    not made again, since it takes a training, must have the hash under which it was recorded.

    Parameters
    ----------
    run : str
    again : Path
        The home (``C2FAITH_HOME``) under which ``figures/`` was made again.
    source_path : str, optional
        What the items were built from, where that is the user's file.

    Returns
    -------
    list of str
        What was compared, a line each.

    Raises
    ------
    InputError
        Naming what differs.
    """
    frozen, committed = paths.frozen_dir(run), paths.ROOT / "figures"
    lines = [_items(run, frozen, source_path), _recorded(frozen)]
    kept = read_json(frozen / "cros" / "figures.json") if (frozen / "cros" / "figures.json").exists() else {}
    wrong: list[str] = []
    for folder in (paths.run_name(run), "published"):
        names = _files(committed / folder)
        if not names:
            raise InputError(f"{committed / folder}: nothing is committed there to compare with")
        held = {name for name in names if name.startswith("cros/")}
        for name in sorted(names - held):
            wrong += different(committed / folder / name, again / "figures" / folder / name)
        for name in sorted(held | {f"cros/{name}" for name in kept} if folder == run else held):
            path = committed / folder / name
            if not path.exists() or sha256_file(path) != kept.get(name.removeprefix("cros/")):
                wrong.append(f"{path}: not as make cros recorded it")
        wrong += [f"{committed / folder / name}: made, but not committed"
                  for name in sorted(_files(again / "figures" / folder) - names)]  # fmt: skip
        note = f", {len(held)} as make cros recorded them" if held else ""
        lines.append(f"figures/{folder}: {len(names - held)} files made again, the same{note}")
    if wrong:
        more = f"; and {len(wrong) - MOST_NAMED} more" if len(wrong) > MOST_NAMED else ""
        raise InputError("; ".join(wrong[:MOST_NAMED]) + more)
    return lines


def _files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def _items(run: str, frozen: Path, source_path: str | None) -> str:
    manifest = dataset.read(frozen).manifest
    parameters = manifest["parameters"]
    if parameters["negator"] != "rules" or not (source_path or parameters["source"] in SEEDED):
        return (
            f"items: as recorded; building them again needs the {parameters['source']} files or the negator's model"
        )
    if changed := dataset.differing(dataset.rebuild(manifest, source_path), manifest):
        raise InputError(
            f"{frozen}: today's code builds another {', '.join(changed)}; give what it builds another RUN"
        )
    return f"items: {len(manifest['files'])} files built again, the same"


def _recorded(frozen: Path) -> str:
    """Whether every recorded file has the hash that it was recorded with."""
    count = 0
    for judge_id, entry in read_json(frozen / "record.json").items():
        parts = ((frozen / "replies" / judge_id, entry["files"]), (frozen / "cros", entry.get("trained", {})))
        for folder, files in parts:
            for name, digest in files.items():
                count += 1
                if not (folder / name).exists() or sha256_file(folder / name) != digest:
                    raise InputError(f"{folder / name}: changed since it was recorded")
    return f"replies and heads: {count} files as recorded"


def different(path: Path, again: Path) -> Iterator[str]:
    """What differs between a committed file and the one made again, if anything does: at most one line."""
    if not again.exists():
        yield f"{path}: was not made again"
        return
    old, new = path.read_bytes(), again.read_bytes()
    if old == new:
        return
    if path.suffix == ".csv":
        try:
            frames = [pd.read_csv(io.BytesIO(raw), keep_default_na=False, na_values=[""]) for raw in (old, new)]
            pd.testing.assert_frame_equal(*frames, check_exact=False, rtol=RELATIVE, atol=ABSOLUTE)
        except (AssertionError, ValueError) as error:
            yield f"{path}: {' '.join(str(error).split())[:200]}"
    elif path.suffix == ".png":
        if not _same_picture(old, new):
            yield f"{path}: another picture"
    elif (place := _first_difference(_text(path, old), _text(path, new))) is not None:
        yield f"{path}: {place}"


def _same_picture(old: bytes, new: bytes) -> bool:
    left, right = (imread(io.BytesIO(raw)) for raw in (old, new))
    return left.shape == right.shape and bool((np.abs(left - right).max(axis=-1) > PIXEL).mean() <= PIXELS)


def _text(path: Path, raw: bytes) -> str:
    """What a file says, without what a compressor or a picture's encoder made of it."""
    if path.suffix == ".pdf":
        streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", raw, re.DOTALL)
        return "\n".join(_inflated(stream) for stream in streams)
    text = raw.decode("utf-8", "replace")
    if path.suffix == ".html":
        text = re.sub(r"data:image/png;base64,[\w+/=]+", "picture", text)
        text = re.sub(r"[\w+/=]{2000,}", lambda match: _inflated(b64decode(match[0])), text)
    return text


def _inflated(raw: bytes) -> str:
    try:
        return zlib.decompress(raw).decode("latin-1")
    except zlib.error:
        return raw.decode("latin-1")


def _first_difference(old: str, new: str) -> str | None:
    """The first place where two texts differ by more than the rounding of a number, in words."""
    if _NUMBER.sub("0", old) == _NUMBER.sub("0", new):
        pairs = zip(_NUMBER.finditer(old), _NUMBER.finditer(new), strict=True)
        far = (pair for pair in pairs if not _close(*(match[0].replace("−", "-") for match in pair)))
        if (pair := next(far, None)) is None:
            return None
        at = pair[0].start()
        return f"line {old.count(chr(10), 0, at) + 1}: {pair[1][0]!r}, committed {pair[0][0]!r}"
    at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    return f"line {old.count(chr(10), 0, at) + 1}: {new[at : at + 40]!r}, committed {old[at : at + 40]!r}"


def _close(a: str, b: str) -> bool:
    return a == b or math.isclose(float(a), float(b), rel_tol=RELATIVE, abs_tol=ABSOLUTE)
