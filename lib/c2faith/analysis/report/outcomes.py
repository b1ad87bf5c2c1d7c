"""What a verdict amounts to, in a word: what the explorer filters and colours by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

RIGHT = ("caught", "accepted", "exact", "as the reference")
WRONG = ("missed", "false alarm", "one step off", "elsewhere", "too high", "too low")
OPEN = ("no reference", "no answer")
_TOLERANCE = 0.5


def outcome(row: Mapping[str, Any]) -> str:
    """The outcome of one row of a verdict frame, a word from `RIGHT`, `WRONG` or `OPEN`.

    A coverage score agrees with the reference if it is at most half a point away.

    >>> outcome({"task": "localization", "value": 4.0, "target": 3})
    'one step off'
    """
    task, value = row["task"], row["value"]
    if np.isnan(value):
        return "no answer"
    if task == "coverage":
        if np.isnan(row["reference"]):
            return "no reference"
        error = value - row["reference"]
        return "as the reference" if abs(error) <= _TOLERANCE else "too high" if error > 0 else "too low"
    faulty = row["truth"] == 0 if task == "detection" else row["target"] >= 0
    flagged = value == 0 if task == "detection" else value >= 0
    if not (faulty and flagged):
        return {(True, False): "missed", (False, True): "false alarm", (False, False): "accepted"}[faulty, flagged]
    if task == "detection":
        return "caught"
    error = abs(value - row["target"])
    return "exact" if error == 0 else "one step off" if error == 1 else "elsewhere"
