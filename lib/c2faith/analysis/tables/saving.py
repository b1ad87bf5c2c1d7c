"""A table as CSV (all columns, full numbers), Markdown and LaTeX; all tables as one JSON document.

The files have no dates and no machine's last digits in them: the same numbers are the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from c2faith.analysis.tables.rendering import markdown
from c2faith.analysis.tables.typesetting import latex
from c2faith.records import write_bytes, write_json

DIGITS = 10


def save(frame: pd.DataFrame, folder: Path, name: str, *, caption: str | None = None) -> list[Path]:
    """Write `<folder>/<name>.csv`, `.md` and `.tex`, each whole or not at all; returns their paths."""
    caption = frame.attrs.get("caption", "") if caption is None else caption
    texts = {
        "csv": frame.to_csv(index=False, float_format=f"%.{DIGITS}g", lineterminator="\n"),
        "md": markdown(frame, caption),
        "tex": latex(frame, f"{folder.name}:{name}", caption),
    }
    for suffix, text in texts.items():
        write_bytes(folder / f"{name}.{suffix}", text.encode())
    return [folder / f"{name}.{suffix}" for suffix in texts]


def numbers(tables: Mapping[str, pd.DataFrame]) -> dict[str, list[dict[str, Any]]]:
    """All numbers of all tables as plain values: a list of rows a table, null where undefined."""
    return {name: [_plain(row) for row in frame.to_dict("records")] for name, frame in tables.items()}


def save_numbers(tables: Mapping[str, pd.DataFrame], path: Path) -> None:
    """Write `numbers` as JSON."""
    write_json(path, numbers(tables))


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    plain = {}
    for name, value in row.items():
        if isinstance(value, (bool, np.bool_)):
            plain[name] = bool(value)
        elif isinstance(value, (float, np.floating)):
            plain[name] = float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None
        elif isinstance(value, np.integer):
            plain[name] = int(value)
        else:
            plain[name] = None if value is pd.NA else value
    return plain
