"""One look for every figure and its files: each judge's colour, hatch, marker and dashes; fonts, lines, axes."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import matplotlib.style
from matplotlib.figure import Figure
from PIL import Image

from c2faith.records import InputError, write_bytes

COLUMN, PAGE = 3.3, 6.8
"""Widths in inches of one column and of both columns of a two-column paper."""

INK, MUTED, FAINT = "#1a1a1a", "#6b6b6b", "#d9d9d9"
REFERENCE: Mapping[str, Any] = {"color": INK, "linestyle": (0, (4, 2)), "linewidth": 1.2, "label": "reference"}
"""How the reference is drawn wherever it appears: black and dashed."""

# Okabe and Ito's palette first (its yellow and black left out), then Tol's muted one: apart for colour-blind
# readers. The first colours also differ in lightness; hatches, markers and dashes carry the rest in grey.
COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00",
    "#332288", "#DDCC77", "#882255", "#44AA99", "#999933", "#7F7F7F",
)  # fmt: skip
_HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++++", "||||", "oooo", "//..", "\\\\..", "**")
_MARKERS = "osD^vPXp*hd<"
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)))
MOST_JUDGES = len(COLOURS)
_LABEL_LENGTH = 26
_SHEET = Path(__file__).with_name("figures.mplstyle")
PNG_DPI = 200
_METADATA: Mapping[str, Mapping[str, None]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


@dataclass(frozen=True, slots=True)
class Look:
    """How one judge is drawn in every figure."""

    label: str
    colour: str
    hatch: str
    marker: str
    dashes: Any

    @property
    def bar(self) -> dict[str, Any]:
        """Keywords of a filled shape."""
        return {"facecolor": self.colour, "edgecolor": "white", "hatch": self.hatch}

    @property
    def line(self) -> dict[str, Any]:
        """Keywords of a line with markers."""
        edge = {"markeredgecolor": "white", "markeredgewidth": 0.4}
        return {"color": self.colour, "linestyle": self.dashes, "marker": self.marker, **edge}


Looks = Mapping[str, Look]


def looks(judge_ids: Iterable[str]) -> dict[str, Look]:
    """A colour, hatch, marker and dash pattern for each judge, given out in the order of their sorted names.

    Pass the judges of the whole run, so that a judge keeps its look in figures where others are absent. More than
    12 are refused: no thirteenth could be told apart.

    >>> [(name, look.marker) for name, look in looks(["b", "a", "b"]).items()]
    [('a', 'o'), ('b', 's')]
    """
    names = sorted(set(judge_ids))
    if len(names) > MOST_JUDGES:
        raise InputError(f"{len(names)} judges: figures tell at most {MOST_JUDGES} apart; choose fewer")
    styles = zip(COLOURS, _HATCHES, _MARKERS, _DASHES * 2, strict=True)
    return {name: Look(_label(name), *each) for name, each in zip(names, styles, strict=False)}


def _label(judge_id: str) -> str:
    """A judge's name as text that matplotlib draws literally, its middle left out where it is long."""
    if len(judge_id) > _LABEL_LENGTH:
        half = _LABEL_LENGTH // 2
        judge_id = f"{judge_id[:half]}…{judge_id[1 - half :]}"
    return judge_id.replace("$", r"\$")


def shared_style() -> AbstractContextManager[None]:
    """The style of every figure, whatever the caller's matplotlib settings are."""
    return matplotlib.style.context(_SHEET, after_reset=True)


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """A function that draws under the shared style."""

    @wraps(draw)
    def wrapper(*args: Any, **keywords: Any) -> Figure:
        with shared_style():
            return draw(*args, **keywords)

    return wrapper


class Picture(Figure):
    """A figure that a notebook shows as the very PNG that `save` wrote, at half its pixel size."""

    png: bytes = b""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return self.png or rendered(self, "png"), {"width": round(self.get_figwidth() * PNG_DPI / 2)}


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `<folder>/<name>.pdf` and `.png`, each whole or not at all; returns their paths.

    The files are the same bytes in any process and on any day: fonts embedded, no dates or program names.
    """
    written = []
    for suffix in _METADATA:
        content = rendered(figure, suffix)
        written.append(folder / f"{name}.{suffix}")
        write_bytes(written[-1], content)
        if suffix == "png" and isinstance(figure, Picture):
            figure.png = content
    return written


def rendered(figure: Figure, suffix: str) -> bytes:
    """A figure as the bytes of a PDF or PNG file."""
    content = io.BytesIO()
    with shared_style():
        figure.savefig(content, format=suffix, dpi=PNG_DPI, metadata=dict(_METADATA[suffix]))
    return _fewer_colours(content) if suffix == "png" else content.getvalue()


def _fewer_colours(png: io.BytesIO) -> bytes:
    """The same picture with a palette: a third of the bytes, and no difference that an eye would see."""
    smaller, picture = io.BytesIO(), Image.open(png).convert("RGB")
    picture = picture.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    picture.save(smaller, "png", optimize=True, dpi=(PNG_DPI, PNG_DPI))
    return smaller.getvalue()
