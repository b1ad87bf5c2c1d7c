r"""A table as LaTeX that a paper can \input: booktabs rules, text wrapped, too much for a page carried to the next.

Whatever a judge is called or a reply says is text here: every special, ligature and symbol is written so that plain
pdflatex prints it, and the source stays ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from c2faith.analysis.tables.rendering import cut, panels
from c2faith.analysis.tables.spec import MISSING

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
