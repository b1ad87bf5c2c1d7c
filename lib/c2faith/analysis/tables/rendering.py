r"""A table for readers, as Markdown and as LaTeX: intervals merged, the best of a column in bold, panel by panel.

A row without any value in a panel is left out of it. What steers this are the attributes that `spec` lists.

The LaTeX is for a paper to \input: booktabs rules, text wrapped, too much for a page carried to the next. Whatever
a judge is called or a reply says is text there: every special, ligature and symbol is written so that plain
pdflatex prints it, and the source stays ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from c2faith.analysis.tables.spec import MISSING, column, written

KEYS = ("judge_id", "origin", "set", "deletion_rate", "rule", "judges")
WRAPPED = 36  # characters of a text column from which on it becomes a paragraph of 5.6 cm
LINE, CHARACTER, GAP = 11.0, 4.6, 12.0  # points: a line of \small, a character of it, the space between columns
PAGE_WIDTH, PAGE_HEIGHT = 345.0, 500.0  # points: of LaTeX's article, its narrowest customary page
LEAST_ROWS = 3  # of a panel at the foot of a page
_NUMBER = re.compile(r"[\[+−-]?\s*[\d<.]")
_MATHS = r"< > - \rho \kappa \Delta \hat{\jmath} \pm \geq \leq \times ^2 \chi \rightarrow \neq \approx \cdot"
_LATEX = {
    **{special: rf"\{special}" for special in "&%$#_{}"},
    **{sign: f"${maths}$" for sign, maths in zip("<>−ρκΔĵ±≥≤×²χ→≠≈·", _MATHS.split(), strict=True)},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    '"': "''",
    "–": "--",
    "…": r"\ldots{}",
    "“": "``",
    "”": "''",
    "’": "'",
}


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


def escape(text: Any) -> str:
    r"""Text for LaTeX: specials escaped, symbols as mathematics, whatever is left outside ASCII as its code.

    >>> escape("95% of a_b, ρ ≥ 0")
    '95\\% of a\\_b, $\\rho$ $\\geq$ 0'
    """
    apart = re.sub(r"-(?=-)", "-\0", re.sub(r"[\0\s]", " ", str(text)))  # two hyphens are no dash
    made = "".join("{}" if c == "\0" else _LATEX.get(c, c) for c in apart)
    return "".join(c if c.isascii() and c.isprintable() else rf"[U+{ord(c):04X}]" for c in made)


def latex(frame: pd.DataFrame, label: str, caption: str = "") -> str:
    """The table as one or more LaTeX `table` floats; needs packages booktabs and graphicx."""
    said = " ".join(text for text in (caption, cut(frame)) if text)
    floats: list[list[str]] = []
    room = 0.0
    for title, cells, bold in panels(frame):
        panel = _Panel(title, cells, bold)
        first = 0
        while first < len(cells) or not first:
            last = panel.fitting(first, room)
            if last < min(first + LEAST_ROWS, len(cells)) or not floats:
                lines_of_caption = 1 if floats else 1 + len(said) // 70
                floats.append([])
                room = PAGE_HEIGHT - 12 * (lines_of_caption + 1)
                last = max(panel.fitting(first, room), min(first + LEAST_ROWS, len(cells)))
            floats[-1] += panel.tabular(first, last)
            room -= panel.height(first, last)
            first = last or 1
    lines = []
    for number, block in enumerate(floats):
        again = r"\addtocounter{table}{-1}" if number else ""
        words = r"(continued)" if number else f"{escape(said)}"
        lines += [r"\begin{table}[tp]", r"\centering", r"\small", *block, rf"{again}\caption{{{words}}}"]
        lines += [rf"\label{{tab:{label}}}"] * (not number) + [r"\end{table}"]
    return "\n".join(lines) + "\n"


class _Panel:
    """One panel, and how high its rows will be once they are shrunk to the page's width."""

    def __init__(self, title: str, cells: pd.DataFrame, bold: np.ndarray):
        self.title, self.bold = title, bold
        self.head, self.rows = list(cells), cells.to_numpy().tolist()
        columns = [[row[place] for row in self.rows] for place in range(len(self.head))]
        widths = [max(map(len, [name, *column])) for name, column in zip(self.head, columns, strict=True)]
        texts = [any(t != MISSING and not _NUMBER.match(t) for t in column) for column in columns]
        self.wrapped = [text and width > WRAPPED for text, width in zip(texts, widths, strict=True)]
        self.alignment = "".join("l" if text or not place else "r" for place, text in enumerate(texts))
        width = sum(CHARACTER * min(width, WRAPPED if wraps else width) + GAP
                    for width, wraps in zip(widths, self.wrapped, strict=True))  # fmt: skip
        self.line = LINE * min(1.0, PAGE_WIDTH / width)

    def height(self, first: int, last: int) -> float:
        """Points that rows `first` to `last` take with their heading."""
        lines = sum(
            max([1, *(-(-len(text) // WRAPPED) for text, wraps in zip(row, self.wrapped, strict=True) if wraps)])
            for row in self.rows[first:last]
        )
        return self.line * (lines + 2) + 24.0

    def fitting(self, first: int, room: float) -> int:
        """The last row that still has room, plus one."""
        last = len(self.rows)
        while last > first and self.height(first, last) > room:
            last -= 1
        return last

    def tabular(self, first: int, last: int) -> Iterator[str]:
        """The lines of rows `first` to `last`, as wide as the page at most."""
        if self.title:
            yield rf"\textit{{{escape(self.title)}}}\\[2pt]"
        yield r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
        yield rf"\begin{{tabular}}{{{self.alignment}}}"
        yield r"\toprule"
        yield self._line(self.head, [False] * len(self.head))
        yield r"\midrule"
        for row, mask in zip(self.rows[first:last], self.bold[first:last], strict=True):
            yield self._line(row, mask)
        yield r"\bottomrule"
        yield r"\end{tabular}}\par\medskip"

    def _line(self, row: Sequence[str], mask: Sequence[bool]) -> str:
        cells = []
        for text, strong, wraps in zip(row, mask, self.wrapped, strict=True):
            cell = rf"\textbf{{{escape(text)}}}" if strong else escape(text)
            cells.append(rf"\parbox[t]{{5.6cm}}{{\raggedright {cell}\strut}}" if wraps else cell)
        # A row that begins with a bracket or an asterisk would be taken for an argument of the line above it.
        return ("{}" if cells[0].startswith(("[", "*")) else "") + " & ".join(cells) + r" \\"
