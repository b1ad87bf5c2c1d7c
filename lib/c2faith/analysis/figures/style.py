"""One look for every figure: the colour, hatch, marker and dashes of each judge; fonts, lines and axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from c2faith.records import InputError

Rng = np.random.Generator | int

COLUMN, PAGE = 3.3, 6.8
"""Widths in inches of one column and of both columns of a two-column paper."""

INK, MUTED, FAINT = "#1a1a1a", "#6b6b6b", "#d9d9d9"
REFERENCE: Mapping[str, Any] = {"color": INK, "linestyle": (0, (4, 2)), "linewidth": 1.2, "label": "reference"}
"""How the reference is drawn wherever it appears: black and dashed."""

# Okabe and Ito's palette first (its yellow and black left out), then Tol's muted one: apart for colour-blind
# readers. The first colours also differ in lightness; hatches, markers and dashes carry the rest in grey.
_COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#332288",
    "#DDCC77",
    "#882255",
    "#44AA99",
    "#999933",
    "#7F7F7F",
)
_HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++++", "||||", "oooo", "//..", "\\\\..", "**")
_MARKERS = "osD^vPXp*hd<"
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)))
_LABEL_LENGTH = 26

RC: Mapping[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.titlesize": 7.5,
    "axes.labelsize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.5,
    "patch.linewidth": 0.5,
    "hatch.linewidth": 0.45,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "legend.columnspacing": 1.2,
    "pdf.fonttype": 42,
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
        return {
            "color": self.colour,
            "linestyle": self.dashes,
            "marker": self.marker,
            "markeredgecolor": "white",
            "markeredgewidth": 0.4,
        }


Looks = Mapping[str, Look]


def looks(judge_ids: Iterable[str]) -> dict[str, Look]:
    """A colour, hatch, marker and dash pattern for each judge, given out in the order of their sorted names.

    Pass the judges of the whole run, so that a judge keeps its look in figures where others are absent.

    Raises
    ------
    InputError
        For more than 12 judges: no thirteenth could be told apart.

    Examples
    --------
    >>> [(name, look.marker) for name, look in looks(["b", "a", "b"]).items()]
    [('a', 'o'), ('b', 's')]
    """
    names = sorted(set(judge_ids))
    if len(names) > len(_COLOURS):
        raise InputError(f"{len(names)} judges: figures tell at most {len(_COLOURS)} apart; choose fewer")
    return {
        name: Look(_label(name), _COLOURS[i], _HATCHES[i], _MARKERS[i], _DASHES[i % len(_DASHES)])
        for i, name in enumerate(names)
    }


def present(frame: pd.DataFrame, chosen: Looks | None) -> dict[str, Look]:
    """The looks of the judges that have rows in this frame."""
    here = set(frame["judge_id"])
    return {name: look for name, look in (chosen or looks(here)).items() if name in here}


def _label(judge_id: str) -> str:
    """A judge's name as text that matplotlib draws literally, its middle left out where it is long."""
    if len(judge_id) > _LABEL_LENGTH:
        half = _LABEL_LENGTH // 2
        judge_id = f"{judge_id[:half]}…{judge_id[1 - half :]}"
    return judge_id.replace("$", r"\$")


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draw under the shared style, whatever the caller's matplotlib settings are."""

    @wraps(draw)
    def wrapper(*args: Any, **keywords: Any) -> Figure:
        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update(RC)
            return draw(*args, **keywords)

    return wrapper
