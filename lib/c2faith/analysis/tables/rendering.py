"""A table for readers, and as Markdown: intervals merged, the best of each column in bold, panel by panel.

A row without any value in a panel is left out of it. What steers this are the attributes that `spec` lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from c2faith.analysis.tables.spec import MISSING, column, written

KEYS = ("judge_id", "origin", "set", "deletion_rate", "rule", "judges")


def pretty(frame: pd.DataFrame, names: Sequence[str]) -> tuple[pd.DataFrame, np.ndarray]:
    """The named columns as text with intervals merged, and which cells are the best of their column."""
    if frame.attrs.get("by_row"):
        return _pretty_rows(frame, names)
    cells, bold = {}, np.zeros((len(frame), len(names)), dtype=bool)
    for place, name in enumerate(names):
        spec = column(name, frame.get(name))
        writer = frame.attrs.get("writers", {}).get(name, spec.writer)
        shown = [written(value, writer) for value in frame[name]] if name in frame else []
        low, high = f"{name}_low", f"{name}_high"
        if low in frame:
            bounds = [[written(value, writer) for value in frame[bound]] for bound in (low, high)]
            spans = [f"[{a}, {b}]" if a != MISSING else "" for a, b in zip(*bounds, strict=True)]
            shown = [f"{a} {b}".strip() for a, b in zip(shown or [""] * len(frame), spans, strict=True)]
            shown = [text or MISSING for text in shown]
        if name == "rho" and "stars" in frame:
            shown = [
                text.replace(" [", f"{star} [", 1) if " [" in text else text + star
                for text, star in zip(shown, frame["stars"], strict=True)
            ]
        heading = spec.heading
        cells[heading if heading not in cells else f"{heading} ({name})"] = shown
        if spec.best and name in frame:
            bold[:, place] = _best(frame, name, spec.best)
    return pd.DataFrame(cells, index=frame.index), bold


def _pretty_rows(frame: pd.DataFrame, names: Sequence[str]) -> tuple[pd.DataFrame, np.ndarray]:
    """The same for a table whose rows are metrics: the first column names them, the others are judges."""
    name, *judges = names
    cells = {column(name).heading: list(frame[name])}
    for judge in judges:
        pairs = zip(frame[judge], frame["writer"], strict=True)
        cells[judge] = [written(value, writer) for value, writer in pairs]
    bold = np.zeros((len(frame), len(names)), dtype=bool)
    for place, row in enumerate(frame.to_dict("records")):
        for group in frame.attrs["groups"]:
            across = pd.DataFrame({"value": [row[judge] for judge in group]}, dtype=float)
            bold[place, [names.index(judge) for judge in group]] = _best(across, "value", row["best"])
    return pd.DataFrame(cells, index=frame.index), bold


def _best(frame: pd.DataFrame, name: str, which: str) -> np.ndarray:
    """Rows whose value is best among at least two that compete; published rows do not."""
    values = frame[name].astype(float).to_numpy()
    score = {"high": values, "low": -values, "zero": -np.abs(values)}[which]
    if "origin" in frame:
        score = np.where(frame["origin"] == "published", np.nan, score)
    groups = frame.attrs.get("best_within", [])
    keys = frame[list(groups)].apply(tuple, axis=1).to_numpy() if groups else np.zeros(len(frame))
    best = np.zeros(len(frame), dtype=bool)
    for _, rows in pd.Series(range(len(frame))).groupby(keys, sort=False):
        among = score[rows]
        if np.isfinite(among).sum() > 1 and np.nanmin(among) < np.nanmax(among):
            best[rows[np.isclose(among, np.nanmax(among), rtol=0, atol=1e-12)]] = True
    return best


def panels(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame, np.ndarray]]:
    """(title, text cells, bold mask) of every panel, cut to the rows that the formatted versions show."""
    shown = frame.head(frame.attrs.get("limit", len(frame)))
    keys = [name for name in frame.attrs.get("keys", KEYS) if name in frame]
    bare = [n for n in frame if not n.endswith(("_low", "_high")) and n not in keys and n != "stars"]
    groups: Mapping[str, Sequence[str]] = frame.attrs.get("panels", {"": bare})
    made = []
    for title, names in groups.items():
        present = [name for name in names if name in frame or f"{name}_low" in frame]
        cells, bold = pretty(shown, [*keys, *present])
        filled = (cells.iloc[:, len(keys) :] != MISSING).any(axis=1).to_numpy() if present else slice(None)
        made.append((title, cells[filled], bold[filled]))
    return made


def cut(frame: pd.DataFrame) -> str:
    """A word on rows that the formatted versions do not show, if there are any."""
    limit = frame.attrs.get("limit", len(frame))
    return f"The first {limit} of {len(frame)} rows; the CSV file has all." if limit < len(frame) else ""


def markdown(frame: pd.DataFrame, caption: str = "") -> str:
    """The table's panels as Markdown tables under its caption."""
    blocks = [_pipe(text) for text in (caption, cut(frame)) if text]
    for title, cells, bold in panels(frame):
        lines = [[_pipe(name) for name in cells], ["---"] * cells.shape[1]]
        for row, mask in zip(cells.to_numpy(), bold, strict=True):
            lines.append([f"**{_pipe(t)}**" if strong else _pipe(t) for t, strong in zip(row, mask, strict=True)])
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        blocks.append(f"**{title}**\n\n{table}" if title else table)
    return "\n\n".join(blocks) + "\n"


def _pipe(text: str) -> str:
    return str(text).replace("|", r"\|").replace("\n", " ").replace("*", r"\*")
