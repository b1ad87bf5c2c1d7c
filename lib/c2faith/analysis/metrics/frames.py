"""The verdict frame that every metric takes: its columns, and what makes it unfit for a final number."""

from __future__ import annotations

import pandas as pd

from c2faith.records import InputError

COMMON = ("judge_id", "item_id", "chain_id", "kind", "n_steps", "value", "status")
COLUMNS = {
    "detection": (*COMMON, "truth"),
    "localization": (*COMMON, "target"),
    "coverage": (*COMMON, "deletion_rate", "realized_rate", "reference"),
}
PENDING = ("api_error", "pending")


def checked(frame: pd.DataFrame, task: str) -> pd.DataFrame:
    """`frame` itself, once it has the task's columns, each item once a judge, and nothing pending.

    Raises
    ------
    InputError
        An item whose call failed (`api_error`) or is still to be asked is no verdict: numbers computed without
        it would change when it arrives.
    """
    missing = [column for column in COLUMNS[task] if column not in frame.columns]
    if missing:
        raise InputError(f"the {task} frame lacks the column {missing[0]!r}; make it with judging.verdict_frame")
    pending = frame.loc[frame["status"].isin(PENDING), "judge_id"].value_counts()
    if len(pending):
        counts = ", ".join(f"{count} of {judge}" for judge, count in sorted(pending.items()))
        raise InputError(
            f"{task}: items still pending ({counts}); run the judging again to finish "
            "them, or leave the judge out: JUDGES=the,others"
        )
    twice = frame.duplicated(["judge_id", "item_id"])
    if twice.any():
        row = frame[twice].iloc[0]
        raise InputError(f"{task}: item {row['item_id']} stands twice for judge {row['judge_id']}; keep one")
    return frame


def per_judge(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """(judge_id, its rows), in the order in which judges appear."""
    return [(str(judge), rows) for judge, rows in frame.groupby("judge_id", sort=False, observed=True)]
