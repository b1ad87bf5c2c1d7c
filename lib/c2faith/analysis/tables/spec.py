"""What makes a function a table, what a table says about itself, and how its columns read.

What a table says about itself travels in `frame.attrs`:

- ``caption``: how it was made;
- ``panels``: a title and its columns for each block that a page can hold; ``keys``: the columns that name a row and
  stand in every panel;
- ``best_within``: columns within whose groups values compete;
- ``by_row``: each row is a metric (its columns `writer` and `best` say how it is written and what is best), and the
  named columns are judges, who compete within each list of ``groups``;
- ``writers``: columns written otherwise than `COLUMNS` says;
- ``limit``: how many rows are shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from c2faith.analysis.resampling import LEVEL

MISSING = "–"
INTERVALS = f"Brackets: {LEVEL:.0%} percentile bootstrap intervals that resample chains."

Maker = Callable[..., pd.DataFrame]
TABLES: dict[str, tuple[Maker, tuple[str, ...]]] = {}
"""Every table's function and needs by its name, in the order in which they are shown."""


def table(*needs: str) -> Callable[[Maker], Maker]:
    """Make a function of a `Measured` the table of its name, made where a run has the tasks (or fields) it needs.

    >>> @table("detection", "items")  # doctest: +SKIP
    ... def headcount(run):
    ...     counts = run.verdicts["detection"]["judge_id"].value_counts()
    ...     return described(counts.reset_index(), "Planned items by judge.", panels={"": "count"})
    """

    def register(make: Maker) -> Maker:
        TABLES[make.__name__] = make, needs
        return make

    return register


def described(
    frame: pd.DataFrame, caption: str, *, panels: Mapping[str, str | list[str]] | None = None, **about: Any
) -> pd.DataFrame:
    """The frame with what it says about itself; a panel's columns are a list, or one text of names."""
    if panels is not None:
        about["panels"] = {
            title: names.split() if isinstance(names, str) else names for title, names in panels.items()
        }
    frame.attrs = {"caption": caption, **about}
    return frame


def _number(form: str, times: int = 1, unit: str = "") -> Callable[[float], str]:
    return lambda value: f"{times * value:{form}}{unit}".replace("-", "−")


WRITERS: dict[str, Callable[[Any], str]] = {
    "text": str,
    "words": lambda value: value.replace("_", " "),
    "count": _number(",.0f"),
    "number2": _number(".2f"),
    "number3": _number(".3f"),
    "signed2": _number("+.2f"),
    "signed3": _number("+.3f"),
    "short": lambda value: _number(".3f" if abs(value) < 1 else ".3g")(value),
    "signed_short": lambda value: _number("+.3f" if abs(value) < 1 else "+.3g")(value),
    "rate": _number(".1f", 100),
    "percent": _number(".1f", 100, "%"),
    "signed_rate": _number("+.1f", 100),
    "level": _number(".0f", 100, "%"),
    "p": lambda value: "< 0.001" if value < 0.001 else f"{value:.3f}",
    "dollars": lambda value: f"{value:.4f}" if 0 < value < 0.01 else f"{value:.2f}",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading, the writer of its numbers, and which one is best (``high``, ``low``, ``zero``)."""

    heading: str
    writer: str = "text"
    best: str = ""


COLUMNS: dict[str, Column] = {
    "judge_id": Column("Judge"),
    "part": Column("part"),
    "origin": Column("From"),
    "judge_a": Column("Judge A"),
    "judge_b": Column("Judge B"),
    "feature": Column("Feature", "words"),
    "edit_type": Column("Edit type", "words"),
    "method": Column("Correction"),
    "line": Column("Printed"),
    "printed": Column("As printed"),
    "over": Column("Over-represented in"),
    "deletion_rate": Column("Level", "level"),
    "n_pairs": Column("Pairs", "count"),
    "n_judges": Column("Judges", "count"),
    "n_missing": Column("Judges missing it", "count"),
    "count": Column("Items", "count"),
    "share": Column("Share %", "rate"),
    "only_a": Column("Only A right", "count"),
    "only_b": Column("Only B right", "count"),
    "unanswered": Column("Unanswered", "count"),
    "unanswered_clean": Column("Unanswered clean", "count"),
    "detection": Column("Detect %", "rate", "high"),
    "detection_answered": Column("Detect % (answered)", "rate", "high"),
    "sd": Column("sd", "number3"),
    "wilson": Column("Wilson interval", "rate"),
    "valid_rate": Column("Valid %", "rate", "high"),
    "false_alarm": Column("False alarms %", "rate", "low"),
    "clean_accuracy": Column("Clean accuracy %", "rate", "high"),
    "balanced_accuracy": Column("Balanced acc. %", "rate", "high"),
    "youden_j": Column("Youden J", "number3", "high"),
    "detection_gain": Column("Detect, points", "signed_rate"),
    "false_alarm_gain": Column("False alarms, points", "signed_rate"),
    "youden_j_gain": Column("Youden J", "signed3"),
    "mcc": Column("MCC", "number3", "high"),
    "auroc": Column("AUROC", "number3", "high"),
    "difference": Column("A − B, points", "signed_rate"),
    "p": Column("p", "p"),
    "p_exact": Column("p exact", "p"),
    "p_bonferroni": Column("p Bonferroni", "p"),
    "p_holm": Column("p Holm", "p"),
    "exact": Column("Exact %", "rate", "high"),
    "exact_answered": Column("Exact % (answered)", "rate", "high"),
    "exact_corrected": Column("Exact, chance-corrected", "number3", "high"),
    "mae_all": Column("MAE all", "number2", "low"),
    "mae_worst": Column("MAE, worst case", "number2", "low"),
    "mae_detected": Column("MAE det.", "number2", "low"),
    "within_1": Column("W@1 %", "rate", "high"),
    "within_2": Column("W@2 %", "rate", "high"),
    "signed_error": Column("Signed error", "signed2", "zero"),
    "signed_null": Column("… of even misses", "signed2"),
    "signed_excess": Column("… excess", "signed2", "zero"),
    "signed_p": Column("p permutation", "p"),
    "signed_p_holm": Column("p Holm", "p"),
    "slip_early": Column("ĵ − j = −1 %", "rate"),
    "slip_late": Column("ĵ − j = +1 %", "rate"),
    "out_of_range": Column("Out of range %", "rate", "low"),
    "processbench_f1": Column("ProcessBench F1 %", "rate", "high"),
    "mean": Column("Mean", "number2"),
    "reference_mean": Column("Reference mean", "number2"),
    "bias": Column("Bias", "signed2", "zero"),
    "mae": Column("MAE", "number2", "low"),
    "inflation": Column("Infl. %", "rate"),
    "rho": Column("ρ", "number3", "high"),
    "kappa": Column("κ (quadratic)", "number3", "high"),
    "order_accuracy": Column("Order accuracy %", "rate", "high"),
    "order_answered": Column("Order % (answered)", "rate", "high"),
    "order_ties": Column("Ties %", "rate"),
    "rho_realized": Column("ρ with realized deletion", "number3", "low"),
    "rho_reference": Column("ρ with reference, all levels", "number3", "high"),
    "pair_accuracy": Column("Pair accuracy %", "rate"),
    "ece": Column("ECE", "number3", "low"),
    "brier": Column("Brier", "number3", "low"),
    "confidence": Column("Mean confidence", "number3"),
    "base_rate": Column("Share wrong", "number3"),
    "rank_detection": Column("Rank by detection", "number2"),
    "rank_balanced": Column("Rank by balanced acc.", "number2"),
    "odds_ratio": Column("Odds ratio per sd", "number2"),
    "correct": Column("Correct", "short"),
    "wrong": Column("Wrong", "short"),
    "delta": Column("Δ", "signed_short"),
    "z": Column("z", "signed2"),
    "items": Column("Items", "count"),
    "worth": Column("Worth %", "rate", "high"),
    "shift_a": Column("Shift A", "count"),
    "shift_b": Column("Shift B", "count"),
    "signed_before": Column("Signed before", "signed2"),
    "signed_after": Column("Signed after", "signed2"),
    "mae_after": Column("MAE after", "number2"),
    "mae_change": Column("MAE change", "signed2"),
    "exact_before": Column("Exact before %", "rate"),
    "exact_after": Column("Exact after %", "rate"),
    "exact_change": Column("Exact change, points", "signed_rate"),
    "count_correct": Column("Correct", "count"),
    "count_wrong": Column("Wrong", "count"),
    "mae_before": Column("MAE before", "number2"),
    "dollars": Column("US$", "dollars", "low"),
    "p50_s": Column("p50 s", "number2", "low"),
    "p95_s": Column("p95 s", "number2", "low"),
}


def column(name: str, values: pd.Series | None = None) -> Column:
    """The column of that name; one that is not listed is written by its type under its own name.

    >>> column("n_clean"), column("rule")
    (Column(heading='n clean', writer='count', best=''), Column(heading='Rule', writer='text', best=''))
    """
    if name in COLUMNS:
        return COLUMNS[name]
    heading = name.replace("_", " ")
    if heading.split()[0] == "n":
        return Column(heading, "count")
    kind = getattr(values, "dtype", None)
    numeric = "count" if pd.api.types.is_integer_dtype(kind) else "number3"
    return Column(heading[:1].upper() + heading[1:], numeric if pd.api.types.is_numeric_dtype(kind) else "text")


def written(value: Any, writer: str) -> str:
    """One cell as text; `MISSING` where there is no value."""
    if value is None or value is pd.NA or value == "" or (isinstance(value, float) and math.isnan(value)):
        return MISSING
    return WRITERS[writer](value)
