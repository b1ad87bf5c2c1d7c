"""The paper's printed figures, as facts, and the Exp 1 outcomes that they determine.

The paper's counts of failure patterns (section 5.5.2 and Fig. 8) give back its whole Exp 1 outcome matrix, which
then passes through the same functions as any judge's verdicts. Its other tables can be audited
(`published_audit`) but not rebuilt.
"""

from __future__ import annotations

from io import StringIO

import numpy as np
import pandas as pd

N_CHAINS = 450
JUDGES = ("GPT-4.1", "DeepSeek-V3.1", "o4-mini")
LEVELS = (0.1, 0.3, 0.5, 0.7)

MISSED_BY = {
    (): 359,
    ("GPT-4.1",): 40,
    ("DeepSeek-V3.1",): 8,
    ("o4-mini",): 4,
    ("GPT-4.1", "DeepSeek-V3.1"): 7,
    ("GPT-4.1", "o4-mini"): 23,
    ("DeepSeek-V3.1", "o4-mini"): 1,
    ("GPT-4.1", "DeepSeek-V3.1", "o4-mini"): 8,
}
"""Exp 1 items by the judges that miss them (Fig. 8; the two-judge patterns follow from Table 1's rates)."""

_DETECTION = """
judge_id       detection  detection_low  detection_high  sd     significant
GPT-4.1        82.7       79.1           86.2            0.379  False
DeepSeek-V3.1  94.7       92.4           96.7            0.225  True
o4-mini        92.0       89.6           94.2            0.271  True
"""
_LOCALIZATION = """
judge_id       exact  detection  mae_all  mae_detected  within_1  within_2  signed_error
GPT-4.1        57.6   89.3       2.58     1.84          72.9      76.4      -0.82
DeepSeek-V3.1  55.8   88.4       2.11     1.45          76.1      81.2      -0.44
o4-mini        68.0   94.2       1.84     1.51          75.9      79.0      -1.20
"""
_COVERAGE = """
judge_id       deletion_rate  mean  sd    reference_mean  bias  mae   inflation  rho     stars
GPT-4.1        0.1            3.82  0.56  3.47            0.35  0.56  93.1       0.134   **
GPT-4.1        0.3            3.74  0.64  3.06            0.67  0.87  90.0       0.126   **
GPT-4.1        0.5            3.39  0.89  2.44            0.95  1.12  77.1       0.211   ***
GPT-4.1        0.7            2.95  0.96  2.17            0.78  0.90  57.6       0.331   ***
DeepSeek-V3.1  0.1            3.90  0.49  3.47            0.43  0.59  95.8       -0.006  ns
DeepSeek-V3.1  0.3            3.86  0.56  3.06            0.79  0.94  94.7       0.048   ns
DeepSeek-V3.1  0.5            3.67  0.81  2.44            1.22  1.39  86.9       0.089   ns
DeepSeek-V3.1  0.7            3.29  1.08  2.17            1.12  1.36  74.6       0.149   **
o4-mini        0.1            3.75  0.73  3.47            0.28  0.60  91.1       0.151   ***
o4-mini        0.3            3.63  0.82  3.06            0.57  0.87  88.0       0.200   ***
o4-mini        0.5            3.26  1.03  2.44            0.82  1.09  71.6       0.237   ***
o4-mini        0.7            2.91  1.10  2.17            0.74  0.99  57.1       0.331   ***
"""
_PREDICTORS = """
feature              correct  wrong  difference
math_symbol_density  0.235    0.139  0.096
edit_similarity      0.918    0.885  0.033
relative_position    0.563    0.491  0.072
word_count           11.9     11.8   0.1
chain_length         14.4     14.8   -0.4
character_count      65.1     62.6   2.5
"""
_EDIT_TYPES = """
edit_type         n    detection
numeric_swap      130  93.1
operator_swap     117  94.9
minor_rewrite     161  91.3
moderate_rewrite  37   81.1
major_rewrite     5    100.0
"""
_PERCENT = ("detection", "detection_low", "detection_high", "exact", "within_1", "within_2", "inflation")


def _read(printed: str) -> pd.DataFrame:
    """A table as printed: percentages become shares, divided exactly enough to print the same digit again."""
    frame = pd.read_csv(StringIO(printed), sep=r"\s+").replace("ns", "")
    percent = frame.columns.intersection(_PERCENT)
    frame[percent] = frame[percent] / 100
    return frame


def table1() -> pd.DataFrame:
    """Table 1: detection rate, its interval and standard deviation; significantly above GPT-4.1 or not."""
    return _read(_DETECTION).assign(n=N_CHAINS)


def table2() -> pd.DataFrame:
    """Table 2: localization, with the mean signed errors of section 5.4.3."""
    return _read(_LOCALIZATION).assign(n=N_CHAINS)


def table3() -> pd.DataFrame:
    """Table 3: coverage by deletion level; `stars` are empty where the paper prints none."""
    return _read(_COVERAGE).assign(n=N_CHAINS)


def table5() -> pd.DataFrame:
    """Table 5: mean features of o4-mini's correct and wrong Exp 1 verdicts."""
    return _read(_PREDICTORS).assign(judge_id="o4-mini")


def table6() -> pd.DataFrame:
    """Table 6: o4-mini's detection rate by edit type."""
    return _read(_EDIT_TYPES).assign(judge_id="o4-mini")


def exp1_outcomes() -> pd.DataFrame:
    """Whether each judge caught each of the 450 perturbed steps, up to the items' order.

    Columns GPT-4.1, DeepSeek-V3.1, o4-mini; True = caught.

    >>> exp1_outcomes().sum().to_dict()
    {'GPT-4.1': 372, 'DeepSeek-V3.1': 426, 'o4-mini': 414}
    """
    rows = [[judge not in missed for judge in JUDGES] for missed, n in MISSED_BY.items() for _ in range(n)]
    return pd.DataFrame(rows, columns=list(JUDGES)).rename_axis(index="item")


def exp1_frame() -> pd.DataFrame:
    """The outcomes as a verdict frame of detection, for the functions that serve every judge.

    Positions, chain lengths and clean twins are not published, so `n_steps` is NaN and no item is clean.
    """
    caught = exp1_outcomes().melt(var_name="judge_id", value_name="caught", ignore_index=False).reset_index()
    chains = [f"item-{number:03d}" for number in caught["item"]]
    return pd.DataFrame(
        {
            "judge_id": caught["judge_id"],
            "task": "detection",
            "item_id": [f"{chain}/causality" for chain in chains],
            "chain_id": chains,
            "problem_id": chains,
            "kind": "perturbed",
            "n_steps": np.nan,
            "truth": 0,
            "value": np.where(caught["caught"], 0.0, 1.0),
            "status": "ok",
            "confidence": np.nan,
            "reasoning": "",
        }
    )
