"""One function a table: measured verdicts in, a DataFrame with full numbers out; `save` writes it for a page.

`compute` makes the whole set of a run. The files have no dates and no machine's last digits in them: the same
numbers are the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from c2faith.analysis.metrics import Measured
from c2faith.analysis.tables import paper, supplement  # their tables register themselves, in this order
from c2faith.analysis.tables.rendering import latex, markdown
from c2faith.analysis.tables.spec import INTERVALS, TABLES, described
from c2faith.judging.tasks import TASKS
from c2faith.records import CausalityItem, as_dict, write_bytes, write_json

__all__ = ["compute", "items_frame", "latex", "markdown", "numbers", "paper", "save", "save_numbers", "supplement"]

DIGITS = 10


def items_frame(rows: Iterable[CausalityItem]) -> pd.DataFrame:
    """Causality rows as a frame, for the tables that look at the perturbed steps' texts."""
    return pd.DataFrame([as_dict(row) for row in rows])


def compute(run: Measured) -> Iterator[tuple[str, pd.DataFrame]]:
    """(name, table) of every table that the run allows: the paper's, what stands beside them, what is beyond.

    A task that is in none of them gets a table of its own name: every number of its metric.
    """
    known = {*run.verdicts, *(field for field in ("items", "totals") if getattr(run, field) is not None)}
    for name, (make, needs) in TABLES.items():
        if known.issuperset(needs) and (made := make(run)) is not None:
            yield name, made
    shown = {need for _, needs in TABLES.values() for need in needs}
    for task in run.verdicts:
        row = TASKS[task]
        if row.metric and task not in shown and row.ablates not in shown:
            yield task, described(run.of(row.metric, task), f"{row.title}. {INTERVALS}")


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
