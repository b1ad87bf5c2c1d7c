"""What a run's verdicts took: calls, retries, tokens, dollars and seconds, read from the journals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from c2faith.judging import ask as judging
from c2faith.judging import verdict_frames
from c2faith.judging.judges import pricing

OFFLINE = ("baseline", "symbolic", "local", "cros")
"""Providers that cost nothing a call; their judges are recorded without a provider, endpoints with theirs."""


def totals(run: str, frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The journals of every judge and task in `frames`, summed up by `pricing.summary`: one row each.

    `dollars` is 0 for judges that run offline, NaN where an endpoint's prices are not recorded.
    """
    rows = []
    for task, frame in frames.items():
        for judge in pd.unique(frame["judge_id"]):
            config = _pinned(run, judge)
            prices = pricing.read_prices(judge, config.get("prices"))
            spent = pricing.summary(verdict_frames.replies(run, judge, task), prices)
            if math.isnan(spent["dollars"]) and config.get("provider", "local") in OFFLINE:
                spent["dollars"] = 0.0
            rows.append({"judge_id": judge, "task": task, **spent})
    return pd.DataFrame(rows)


def _pinned(run: str, judge_id: str) -> Mapping[str, Any]:
    """A judge's description as recorded beside its replies."""
    for folder in verdict_frames.folders(run):
        if (folder / "replies" / judge_id / "judge.json").exists():
            return judging.read_pin(folder / "replies" / judge_id)
    return {}
