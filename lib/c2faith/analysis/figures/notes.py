"""The small print of a figure: how many items, how many without an answer, what could not be computed."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from c2faith.analysis.figures.style import Looks

INTERVALS = "95% intervals, chains resampled"
_KINDS: Mapping[str, str] = {"perturbed": "perturbed", "clean": "clean", "natural": "natural"}
_MOST_NAMED = 4


def counted(frame: pd.DataFrame) -> str:
    """Planned items a judge, by kind: ``n = 179 perturbed, 179 clean a judge``."""
    parts = []
    for kind in _KINDS:
        counts = frame.loc[frame["kind"] == kind, "judge_id"].value_counts()
        if len(counts):
            parts.append(f"{spread(counts)} {kind}")
    return f"n = {', '.join(parts)} items a judge"


def spread(counts: pd.Series) -> str:
    """One number if all are equal, else the least and the most."""
    least, most = int(counts.min()), int(counts.max())
    return str(least) if least == most else f"{least} to {most}"


def unanswered(frame: pd.DataFrame, drawn: Looks) -> str:
    """Items without an answer: by judge where few judges have any, else the range."""
    counts = frame["value"].isna().groupby(frame["judge_id"]).sum()
    silent = counts[counts > 0]
    if silent.empty:
        return "all answered"
    if len(silent) > _MOST_NAMED:
        return f"unanswered: {spread(counts)} a judge"
    return "unanswered: " + ", ".join(f"{drawn[name].label} {count}" for name, count in silent.items())


def undefined(estimates: pd.DataFrame) -> str:
    """A word on estimates that do not exist, if there are any."""
    return "missing marks: undefined (nothing to divide by)" if estimates["value"].isna().any() else ""
