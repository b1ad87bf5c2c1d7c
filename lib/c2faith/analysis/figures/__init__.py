"""The paper's figures and those beyond it: `draw` makes all that a run's verdicts allow, `save` writes one's files.

A figure is a function under `@figure(caption, needs…)` in one of these modules: the gallery, the report and the
notebook find it there.
"""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure

from c2faith.analysis.figures import causality, coverage, overall, style
from c2faith.analysis.figures.registry import FIGURES, Entry, judges_of
from c2faith.analysis.figures.style import save
from c2faith.analysis.metrics import Measured
from c2faith.judging.tasks import TASKS

__all__ = ["captions", "causality", "coverage", "draw", "gallery", "overall", "save"]


def gallery() -> list[Entry]:
    """All figures, in the order of the paper; a measured task that none is about has one of its headline."""
    drawn = {task for entry in FIGURES.values() for task in entry.tasks}
    others = [
        Entry(
            name,
            f"{row.title}: {row.headline.replace('_', ' ')}.",
            overall.headline,
            (name,),
            options={"task": name},
        )
        for name, row in TASKS.items()
        if row.headline and name not in drawn
    ]
    return sorted([*FIGURES.values(), *others], key=lambda entry: entry.place)


def captions() -> dict[str, str]:
    """What each figure of the gallery shows, by name."""
    return {entry.name: entry.caption for entry in gallery()}


def draw(measured: Measured) -> Iterator[tuple[str, Figure]]:
    """(name, figure) of every figure of the gallery that the run's verdicts allow.

    A judge has the same look in all of them. Of more than 12 judges each figure draws the best at its task.
    """
    judges = judges_of(measured, measured.verdicts)
    same = style.looks(judges) if len(judges) <= style.MOST_JUDGES else None
    for entry in gallery():
        if entry.fits(measured.verdicts):
            yield entry.name, entry.draw(measured, same)
