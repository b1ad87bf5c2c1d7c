"""Table 4: one line a task, the best judge in bold, and an overall rank that says how it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from c2faith.analysis import metrics, published

TASKS = ("detection", "localization", "coverage")
PAPER_ROWS = ("Exp 1 detect", "Exp 2 exact match", "Cov. ρ @{high}", "Cov. bias @{low}")
FAIR_ROWS = ("Exp 1 balanced acc.", "Exp 2 ProcessBench F1", "Cov. order accuracy", "Cov. MAE, all levels")
_PAPER_FORM = (("percent", "high"), ("percent", "high"), ("number3", "high"), ("signed2", "zero"))
_FAIR_FORM = (("percent", "high"), ("percent", "high"), ("percent", "high"), ("number2", "low"))
RULE = (
    "Mean rank: over the four rows above it, ties sharing theirs; an undefined value (a constant score has no ρ) "
    "ranks last, and a judge that was not put to every task has none "
    "and takes no place; published judges and this run's are ranked apart. Overall rank: the order of mean ranks."
)


def table4_capability(frames: Mapping[str, pd.DataFrame], *, show_published: bool = True) -> pd.DataFrame:
    """Table 4: the paper's four rows and its rank; [+] four rows that false alarms and clean chains count in.

    Parameters
    ----------
    frames : mapping
        Verdict frames by task; judges that miss one have no rank.

    Returns
    -------
    DataFrame
        `task`, `writer` and `best` (how the row's numbers are written and which is best), one column a judge,
        and the paper's judges as "<judge> (published)". Intervals of the values are in Tables 1 to 3.
    """
    frames = {task: frames[task] for task in TASKS if task in frames}
    ours, asked = _values(frames)
    low, high = _levels(frames)
    names = [name.format(low=f"{low:.0%}", high=f"{high:.0%}") for name in PAPER_ROWS]
    blocks = [_block(ours.iloc[:4].set_axis(names), asked, _PAPER_FORM, "paper's rows")]
    if show_published:
        printed = _printed().set_axis(names).rename(columns=lambda judge: f"{judge} (published)")
        theirs = _block(printed, pd.Series(True, printed.columns), _PAPER_FORM, "paper's rows")
        blocks[0] = blocks[0].join(theirs.drop(columns=["writer", "best"]))
    blocks.append(_block(ours.iloc[4:].set_axis(FAIR_ROWS), asked, _FAIR_FORM, "fair rows"))
    table = pd.concat(blocks).rename_axis("task").reset_index()
    judges = [name for name in table if name not in ("task", "writer", "best")]
    table.attrs = {
        "caption": f"Cross-task capability; bold: best of a row. {RULE} The fair rows put clean twins and all "
        "levels into the comparison: balanced accuracy, F1 of exact match and clean-chain accuracy, "
        "order accuracy across the levels of a chain, MAE against the reference. The published rank "
        "is the one that this rule gives the printed values; the paper prints 3rd, Mixed and 1st "
        "without a rule.",
        "keys": ["task"],
        "panels": {"": judges},
        "by_row": True,
        "groups": [list(ours.columns), [name for name in judges if name not in ours.columns]],
    }
    return table


def _levels(frames: Mapping[str, pd.DataFrame]) -> tuple[float, float]:
    """The lowest and the highest deletion level above 0; the paper's where there is no coverage."""
    levels = frames["coverage"]["deletion_rate"] if "coverage" in frames else pd.Series(published.LEVELS)
    above = levels[levels > 0]
    return (above.min(), above.max()) if len(above) else (published.LEVELS[0], published.LEVELS[-1])


def _values(frames: Mapping[str, pd.DataFrame]) -> tuple[pd.DataFrame, pd.Series]:
    """The eight values of every judge, NaN where undefined, and whether it was put to all three tasks."""
    judges = pd.unique(pd.concat([frame["judge_id"] for frame in frames.values()]))
    values = pd.DataFrame(np.nan, index=range(8), columns=judges)
    tasks = [set(frames[task]["judge_id"]) if task in frames else set() for task in TASKS]
    asked = pd.Series([all(judge in task for task in tasks) for judge in judges], judges)
    if "detection" in frames:
        for row in metrics.detection(frames["detection"], draws=1).itertuples():
            values.loc[[0, 4], row.judge_id] = [row.detection, row.balanced_accuracy]
    if "localization" in frames:
        for row in metrics.localization(frames["localization"], draws=1).itertuples():
            values.loc[[1, 5], row.judge_id] = [row.exact, row.processbench_f1]
    if "coverage" in frames:
        low, high = _levels(frames)
        levels = metrics.coverage(frames["coverage"], draws=1)
        for judge, mine in levels.groupby("judge_id"):
            at = mine.set_index("deletion_rate")
            rho, bias = at["rho"].get(high, np.nan), at["bias"].get(low, np.nan)
            mae = np.average(at["mae"], weights=at["n_compared"]) if at["n_compared"].all() else np.nan
            values.loc[[2, 3, 7], judge] = [rho, bias, mae]
        for row in metrics.coverage_trend(frames["coverage"], draws=1).itertuples():
            values.loc[6, row.judge_id] = row.order_accuracy
    return values, asked


def _printed() -> pd.DataFrame:
    """The paper's four rows, from its Tables 1 to 3."""
    coverage = published.table3().set_index(["deletion_rate", "judge_id"])
    return pd.DataFrame(
        [
            published.table1().set_index("judge_id")["detection"],
            published.table2().set_index("judge_id")["exact"],
            coverage.loc[published.LEVELS[-1], "rho"],
            coverage.loc[published.LEVELS[0], "bias"],
        ]
    )[list(published.JUDGES)]


def _block(values: pd.DataFrame, asked: pd.Series, forms: Sequence[tuple[str, str]], name: str) -> pd.DataFrame:
    """Rows of values, then their mean rank and the overall rank; none for a judge that was not asked all."""
    sign = {"high": lambda row: -row, "low": lambda row: row, "zero": np.abs}
    complete = values.loc[:, asked]  # a judge that has no rank takes no place either
    ranks = [
        rankdata(sign[best](row).fillna(np.inf))
        for (_, row), (_, best) in zip(complete.iterrows(), forms, strict=True)
    ]
    mean = pd.Series(np.mean(ranks, axis=0), complete.columns).reindex(values.columns)
    block = values.assign(writer=[form[0] for form in forms], best=[form[1] for form in forms])
    block.loc[f"Mean rank ({name})"] = {**mean, "writer": "number2", "best": "low"}
    block.loc[f"Overall rank ({name})"] = {**mean.rank(method="min"), "writer": "count", "best": "low"}
    return block
