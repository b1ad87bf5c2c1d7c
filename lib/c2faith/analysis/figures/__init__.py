"""The paper's figures and those beyond it: `draw` makes all that a run's verdicts allow, `save` writes one's files.

A figure is a function under `@figure(name, caption=…, needs=…)` in one of these modules: the gallery, the report
and the notebook find it there.
"""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure

from c2faith.analysis.figures.coverage import fig3a_scores, fig3b_trend
from c2faith.analysis.figures.detection import ablation, false_alarm_plane, fig2a_detection, fig7_position
from c2faith.analysis.figures.localization import fig2b_localization, fig5_within_k, fig6_signed_error
from c2faith.analysis.figures.overall import calibration, fig4_radar, fig8_failures, headline
from c2faith.analysis.figures.registry import FIGURES, Entry, judges_of
from c2faith.analysis.figures.style import MOST_JUDGES, looks, save
from c2faith.analysis.metrics import Measured
from c2faith.judging.tasks import TASKS

__all__ = [
    "ablation",
    "calibration",
    "captions",
    "draw",
    "false_alarm_plane",
    "fig2a_detection",
    "fig2b_localization",
    "fig3a_scores",
    "fig3b_trend",
    "fig4_radar",
    "fig5_within_k",
    "fig6_signed_error",
    "fig7_position",
    "fig8_failures",
    "looks",
    "save",
]


def captions() -> dict[str, str]:
    """What each figure shows, by name: in the order of the paper, then those beyond it."""
    return {entry.name: entry.caption for entry in gallery()}


def draw(measured: Measured) -> Iterator[tuple[str, Figure]]:
    """(name, figure) of every figure that the run's verdicts allow, in the order of `captions`.

    A judge has the same look in all of them. Of more than 12 judges each figure draws the best at its task.
    """
    judges = judges_of(measured, measured.verdicts)
    same = looks(judges) if len(judges) <= MOST_JUDGES else None
    for entry in gallery():
        if entry.fits(measured.verdicts):
            yield entry.name, entry.draw(measured, same)


def gallery() -> list[Entry]:
    """All figures; a measured task that none of them is about has one of its headline."""
    drawn = {task for entry in FIGURES.values() for task in entry.tasks}
    others = [
        Entry(name, f"{row.title}: {row.headline.replace('_', ' ')}.", headline, (name,), options={"task": name})
        for name, row in TASKS.items()
        if row.headline and name not in drawn
    ]
    return sorted([*FIGURES.values(), *others], key=lambda entry: entry.place)
