"""The report of a run: one HTML page with all tables and figures, and an explorer of the items."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from c2faith.analysis import figures
from c2faith.analysis.report.explorer import OPEN, RIGHT, WRONG, payload, reported
from c2faith.analysis.tables.rendering import panels
from c2faith.dataset import Dataset
from c2faith.records import write_bytes

_HERE = Path(__file__).parent
_PNG_SIZE = slice(16, 24)
_WORDED = {"detection", "localization", "coverage"}
"""The tasks for whose answers `page.js` has words of its own."""


def build(
    out_path: Path,
    *,
    run: str,
    verdicts: Mapping[str, pd.DataFrame],
    tables: Mapping[str, pd.DataFrame],
    figures_folder: Path,
    items: Dataset,
) -> Path:
    """Write the report of a run: one HTML file that needs no server and no network.

    Parameters
    ----------
    tables : mapping
        By name (`c2faith.analysis.tables.compute`), shown in their order with ``attrs["caption"]``.
    figures_folder : Path
        Holds the PNG files of `figures.captions`; those that are missing are left out.

    Returns
    -------
    Path
        `out_path`. The same input gives the same bytes, as long as zlib is the same.

    Notes
    -----
    Steps and replies are untrusted: all text is escaped or set as text, formulas are rebuilt from an allowed set
    of elements, and the page's own policy lets no script run but the one written here.
    """
    engine = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    tasks = reported()
    script = engine.get_template("page.js").render(others=set(tasks) - _WORDED) + "\n"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    drawn = {name: (figures_folder / f"{name}.png", caption) for name, caption in figures.captions().items()}
    text = engine.get_template("page.html").render(
        run=run,
        policy=f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        style=Markup((_HERE / "page.css").read_text("utf-8")),
        script=Markup(script),
        counts=_counts(items),
        tasks=tasks,
        answered=_answered(verdicts, tasks),
        tables=[_table(name, table) for name, table in tables.items()],
        figures=[_figure(name, path, caption) for name, (path, caption) in drawn.items() if path.exists()],
        content=_packed(payload(verdicts, items) | {"right": RIGHT, "wrong": WRONG, "open": OPEN}),
    )
    write_bytes(out_path, text.encode())
    return out_path


def _packed(value: Any) -> str:
    """JSON, deflated and in base64: a fraction of its size, and nothing in it that markup could be made of."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _title(name: str) -> str:
    """A file's name as words.

    >>> _title("table1_detection"), _title("false_alarms")
    ('Table 1, detection', 'False alarms')
    """
    first, _, rest = name.partition("_")
    if first == "appendix":
        return f"Appendix {rest[0].upper()}, {rest[2:]}"
    for prefix, word in (("table", "Table "), ("fig", "Fig. ")):
        number = first.removeprefix(prefix)
        if number != first and number[:1].isdigit():
            return f"{word}{number}, {rest.replace('_', ' ')}"
    return name.replace("_", " ").capitalize()


def _counts(items: Dataset) -> dict[str, int]:
    return {
        "chains": len(items.chains),
        "perturbed chains": len(items.causality),
        "chains with steps removed, and controls": len(items.coverage),
        "solutions with a natural error or none": len(items.natural),
    }


def _answered(verdicts: Mapping[str, pd.DataFrame], tasks: Sequence[str]) -> dict[str, dict[str, str]]:
    """How many items each judge answered, of those it was asked: judge → task → words."""
    rows: dict[str, dict[str, str]] = {}
    for task in tasks:
        if task in verdicts:
            for judge, values in verdicts[task].groupby("judge_id")["value"]:
                rows.setdefault(str(judge), {})[task] = f"{values.notna().sum():,} of {len(values):,}"
    return dict(sorted(rows.items()))


def _table(name: str, frame: pd.DataFrame) -> dict[str, Any]:
    """A table's panels; the paper's own rows are to be set apart, and the best values bold."""
    limit = frame.attrs.get("limit", len(frame))
    made = []
    for title, cells, bold in panels(frame):
        rows = zip(cells.to_numpy().tolist(), bold, strict=True)
        marked = [("published" in row, list(zip(row, mask, strict=True))) for row, mask in rows]
        made.append({"title": title, "head": list(cells), "rows": marked})
    return {
        "name": name,
        "title": _title(name),
        "caption": frame.attrs.get("caption", ""),
        "cut": f"The first {limit} of {len(frame)} rows." if limit < len(frame) else "",
        "panels": made,
    }


def _figure(name: str, path: Path, caption: str) -> dict[str, Any]:
    content = path.read_bytes()
    width, height = struct.unpack(">II", content[_PNG_SIZE])
    about = {"name": name, "title": _title(name), "caption": caption, "width": width, "height": height}
    return about | {"image": base64.b64encode(content).decode()}
