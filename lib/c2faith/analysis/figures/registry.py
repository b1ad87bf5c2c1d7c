"""What makes a function a figure: its name, caption and needs; and which judges it draws, in which looks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from c2faith.analysis.figures import layout, style
from c2faith.analysis.figures.style import MOST_JUDGES, Looks
from c2faith.analysis.metrics import Measured
from c2faith.analysis.resampling import Resamples, estimate, means
from c2faith.judging.tasks import TASKS

ENDS = ["value", "low", "high"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One figure of the gallery: how it is made, and of which tasks' verdicts (all of `needs`, one of `any_of`)."""

    name: str
    caption: str
    make: Callable[..., Figure]
    needs: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> tuple[float, str]:
        """The paper's figures in its order, then those beyond it."""
        number = re.match(r"fig(\d+)(\w*)", self.name)
        return (int(number[1]), number[2]) if number else (float("inf"), "")

    @property
    def tasks(self) -> tuple[str, ...]:
        """What it is about."""
        return (*self.needs, *self.any_of)

    def fits(self, tasks: Iterable[str]) -> bool:
        """Whether a run with these tasks' verdicts has all that it needs."""
        known = set(tasks)
        return known.issuperset(self.needs) and not known.isdisjoint(self.any_of or self.needs)

    def draw(self, measured: Measured, looks: Looks | None = None, **options: Any) -> Figure:
        """The figure, under the shared style; without looks, of its tasks' judges, or the best of very many."""
        left_out = ""
        if looks is None:
            looks, left_out = self._best(measured)
        with style.shared_style():
            try:
                made = self.make(measured, looks, **{**self.options, **options})
            except layout.NothingToDraw as reason:
                made = layout.empty(str(reason))
            return layout.note(made, left_out) if left_out else made

    def _best(self, measured: Measured) -> tuple[Looks, str]:
        judges = sorted(judges_of(measured, self.any_of or self.needs))
        if len(judges) <= MOST_JUDGES:
            return style.looks(judges), ""
        task = next(task for task in self.tasks if task in measured.verdicts)
        scores = headlines(measured, task)["value"].reindex(judges)
        best = scores.sort_values(ascending=False, kind="stable").index[:MOST_JUDGES]
        words = f"{task}: {TASKS[task].headline.replace('_', ' ')}"
        return style.looks(best), f"the best {MOST_JUDGES} of {len(judges)} judges by {words}"


FIGURES: dict[str, Entry] = {}


def figure(
    caption: str, *needs: str, any_of: tuple[str, ...] = (), name: str = "", **options: Any
) -> Callable[[Callable[..., Figure]], Callable[..., Figure]]:
    """Make a function of a `Measured` and the looks of the judges to draw a figure of the gallery.

    Parameters
    ----------
    caption : str
        What it shows, in a sentence.
    needs, any_of : str
        Tasks: it is drawn where a run has all of the first and one or more of the second.
    name : str
        Of its files, if not the function's; `figN…` stands in the paper's order, any other after those.
    options
        Keywords for the function; decorate it again for a second figure with others.
    """

    def register(make: Callable[..., Figure]) -> Callable[..., Figure]:
        plain = getattr(make, "__wrapped__", make)
        entry = Entry(name or plain.__name__, caption, plain, needs, any_of, options)
        FIGURES[entry.name] = entry
        return update_wrapper(partial(entry.draw), plain) if plain is make else make

    return register


def judges_of(measured: Measured, tasks: Iterable[str]) -> set[str]:
    """All judges that were asked any of the tasks."""
    return {judge for task in tasks if task in measured.verdicts for judge in measured.verdicts[task]["judge_id"]}


def headlines(measured: Measured, task: str) -> pd.DataFrame:
    """The number that says what a judge is worth at a task: value, low, high, by judge."""
    table = measured.of(TASKS[task].metric, task)
    return column(table, TASKS[task].headline, table["judge_id"])


def shown(measured: Measured, task: str, looks: Looks, *kinds: str) -> tuple[pd.DataFrame, Looks]:
    """What is `kept` of a task's verdicts, and the looks of its judges; `NothingToDraw` if that is nothing."""
    frame = kept(measured, task, looks, *kinds)
    if frame.empty:
        raise layout.NothingToDraw(f"No {task} verdicts" + (f" on {' or '.join(kinds)} items" if kinds else ""))
    return frame, having(frame, looks)


def kept(measured: Measured, task: str, looks: Looks, *kinds: str) -> pd.DataFrame:
    """A task's verdicts by the judges to draw, on items of these kinds (all if none is named)."""
    frame = measured.verdicts[task]
    return frame[frame["judge_id"].isin(looks) & (frame["kind"].isin(kinds) | (not kinds))]


def having(frame: pd.DataFrame, looks: Looks) -> Looks:
    """The looks of the judges that have rows in this frame."""
    here = set(frame["judge_id"])
    return {name: look for name, look in looks.items() if name in here}


def column(table: pd.DataFrame, name: str, looks: Iterable[str]) -> pd.DataFrame:
    """One estimate of a metric's table as value, low and high, indexed by judge in the order of `looks`."""
    chosen = table.set_index("judge_id")[[name, f"{name}_low", f"{name}_high"]]
    return chosen.set_axis(ENDS, axis=1).reindex(list(looks))


def rates(
    measured: Measured, frame: pd.DataFrame, looks: Looks, amounts: pd.Series, among: pd.Series | bool = True
) -> pd.DataFrame:
    """Each judge's mean of `amounts` over its rows of the frame, or over those where `among` holds.

    The frame's chains are resampled. Indexed by judge: value, low, high (95%), NaN where it is over no rows.
    """
    chains = frame["chain_id"]
    resamples = Resamples.draw(chains, measured.draws, measured.seed)
    own = {name: (amounts, (frame["judge_id"] == name) & among) for name in looks}
    found = [estimate(*mean) for mean in means(resamples, chains, own).values()]
    return pd.DataFrame([(each.value, each.low, each.high) for each in found], list(looks), ENDS)
