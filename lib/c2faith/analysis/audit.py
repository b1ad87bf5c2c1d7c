"""An audit of the paper's printed tables: can the numbers stand together?

A printed number is a range, half a unit of its last digit to each side. A line is *consistent* if some counts or
scores give all that it names, *inconsistent* if none do, *undetermined* if what is printed does not decide. Nothing
here says why a line is inconsistent: a few items fewer than 450 would explain most of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import ceil, floor
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linprog

from c2faith.analysis import published
from c2faith.analysis.published import N_CHAINS
from c2faith.analysis.stats import spearman_p

CONSISTENT, INCONSISTENT, UNDETERMINED = "consistent", "inconsistent", "undetermined"
_EDGE = 1e-9
SIMILARITY = {
    "numeric_swap": (0.9, 1.0),
    "operator_swap": (0.9, 1.0),
    "minor_rewrite": (0.8, 0.9),
    "moderate_rewrite": (0.5, 0.8),
    "major_rewrite": (0.0, 0.5),
}
SHARES_OF_4 = {("GPT-4.1", 0.7): 0.407, ("DeepSeek-V3.1", 0.7): 0.641, ("DeepSeek-V3.1", 0.1): 0.951}
P_IN_TEXT = {("DeepSeek-V3.1", 0.1): 0.906, ("DeepSeek-V3.1", 0.3): 0.315, ("DeepSeek-V3.1", 0.7): 0.002}
"""Section 5.4.4: shares of top scores, and p-values of ρ."""

Line = tuple[str, str, str, bool | None] | tuple[str, str, str, bool | None, str]
"""A line of the audit: what is looked at, as printed, as computed, whether they fit (None: undecided); a note."""


def audit() -> pd.DataFrame:
    """Every line of the audit of Tables 2, 3, 5 and 6: `part`, `line`, `printed`, `computed`, `verdict`, `note`."""
    parts = {f"Table 2, {row.judge_id}": _table2(row) for row in published.table2().itertuples()}
    for row in published.table3().itertuples():
        parts[f"Table 3, {row.judge_id} at {row.deletion_rate:.0%}"] = _table3(row)
    return written(parts | {"Table 5": _table5(), "Table 6": _table6()})


def written(parts: Mapping[str, Iterable[Line]]) -> pd.DataFrame:
    """Lines by the part of the paper that they are about, as a table."""
    words = {True: CONSISTENT, False: INCONSISTENT, None: UNDETERMINED}
    rows = [
        (part, line, printed, computed, words[holds if holds is None else bool(holds)], *(note or [""]))
        for part, lines in parts.items()
        for line, printed, computed, holds, *note in lines
    ]
    return pd.DataFrame(rows, columns=["part", "line", "printed", "computed", "verdict", "note"])


def possible_counts(share: float, n: int, digits: int = 3) -> list[int]:
    """Counts k of which k/n prints as `share`, rounded to so many digits (3: a percentage with one decimal).

    >>> possible_counts(0.576, 450), possible_counts(0.746, 450)
    ([259], [])
    """
    half = 0.5 * 10**-digits + _EDGE
    return list(range(max(0, ceil((share - half) * n)), min(n, floor((share + half) * n)) + 1))


def _count_line(line: str, share: float, n: int) -> Line:
    """Whether a printed share is a count out of n; if not, the nearest smaller n that allows one."""
    if counts := possible_counts(share, n):
        return line, f"{100 * share:.1f}%", _numbers(counts) + f" of {n}", True
    fewer = next(m for m in range(n - 1, 0, -1) if possible_counts(share, m))
    note = f"no count of {n}; {_numbers(possible_counts(share, fewer))} of {fewer} would do"
    return line, f"{100 * share:.1f}%", "none", False, note


def _numbers(counts: list[int]) -> str:
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _table2(row: Any) -> Iterator[Line]:
    shares = row.detection, row.exact, row.within_1, row.within_2
    detected, exact = (possible_counts(share, N_CHAINS)[0] for share in shares[:2])
    within_1, within_2 = (possible_counts(share, detected)[0] for share in shares[2:])
    yield _count_line("exact match at n = 450", row.exact, N_CHAINS)
    yield _count_line("detection at n = 450", row.detection, N_CHAINS)
    yield _count_line(f"within 1 at the detected n = {detected}", row.within_1, detected)
    yield _count_line(f"within 2 at the detected n = {detected}", row.within_2, detected)
    ordered = exact <= within_1 <= within_2 <= detected
    yield "exact ≤ within 1 ≤ within 2 ≤ detected", "", f"{exact}, {within_1}, {within_2}, {detected}", ordered

    near, far = within_1 - exact + 2 * (within_2 - within_1), detected - within_2
    least, mae, signed = (near + 3 * far) / detected, row.mae_detected, row.signed_error
    note = f"the {far} picks farther than 2 are {(mae * detected - near) / far:.1f} steps off"
    line = "MAE det. is at least what the within-k counts need"
    yield line, f"{mae:.2f}", f"≥ {least:.2f}", mae + 0.005 >= least, note

    early_late = f"early part {(mae - signed) / 2:.2f}, late part {(mae + signed) / 2:.2f}"
    yield "|mean signed error| ≤ MAE det.", f"{signed:+.2f}", early_late, abs(signed) <= mae + 0.01
    yield _implied_target(row.mae_all, mae, detected)


def _implied_target(mae_all: float, mae_detected: float, detected: int) -> Line:
    """MAE all counts a missed chain as j + 1, so both MAEs give the mean target of the missed chains.

    Targets lie in the middle region of chains of 8 to 30 steps: 2 … 26, counted from 0.
    """
    missed = N_CHAINS - detected
    low, high = (
        ((mae_all + half) * N_CHAINS - (mae_detected - half) * detected) / missed - 1 for half in (-0.005, 0.005)
    )
    average = average_of_table5("relative_position") * average_of_table5("chain_length")
    line = f"mean target of the {missed} missed chains behind MAE all and MAE det."
    note = f"all targets: about {average - 1:.0f} or {average:.0f} by Table 5, if positions count from 1 or from 0"
    return line, f"{mae_all:.2f}, {mae_detected:.2f}", f"{low:.1f} to {high:.1f}", high >= 2 and low <= 26, note


def average_of_table5(feature: str) -> float:
    """Mean of a feature over Table 5's 414 correct and 36 wrong items."""
    row = published.table5().set_index("feature").loc[feature]
    return float(row["correct"] * (414 / N_CHAINS) + row["wrong"] * (36 / N_CHAINS))


def _table3(row: Any) -> Iterator[Line]:
    at, top = (row.judge_id, row.deletion_rate), SHARES_OF_4.get((row.judge_id, row.deletion_rate))
    yield _count_line("inflation at n = 450", row.inflation, N_CHAINS)
    if top is not None:
        yield _count_line("share of scores of 4 (section 5.4.4) at n = 450", top, N_CHAINS)
    gap = row.mean - row.reference_mean
    yield "bias = mean − reference mean", f"{row.bias:+.2f}", f"{gap:+.2f}", abs(gap - row.bias) < 0.016
    yield "MAE ≥ |bias|", f"{row.mae:.2f}", f"≥ {abs(row.bias):.2f}", row.mae >= abs(row.bias) - 0.01
    yield _distribution(row.mean, row.sd, row.inflation, top)

    # The caption: ** p < .01, *** p < .001, none: p > .05 (DeepSeek's).
    least, most, words = {
        "***": (0, 0.001, "p < 0.001"),
        "**": (0.001, 0.01, "p < 0.01"),
        "": (0.05, 1, "p > 0.05"),
    }[row.stars]
    low, high = _p_range(row.rho)
    printed, computed = f"{row.rho:.3f}{row.stars}, {words}", f"p = {low:.2g} to {high:.2g}"
    yield "stars of ρ at n = 450", printed, computed, low < most and high >= least
    if at in P_IN_TEXT:
        holds = low - 0.0005 - _EDGE <= P_IN_TEXT[at] <= high + 0.0005 + _EDGE
        yield "p of ρ (section 5.4.4) at n = 450", f"{P_IN_TEXT[at]:.3f}", f"{low:.3f} to {high:.3f}", holds


def _p_range(rho: float) -> list[float]:
    """Least and greatest p at n = 450 of the ρ that print as this one."""
    return sorted(float(spearman_p(value, N_CHAINS)) for value in (rho - 0.0005, rho + 0.0005))


def _distribution(mean: float, sd: float, inflation: float, top: float | None) -> Line:
    """Is there a distribution of the scores 0 … 4 with this mean, sd and share of 3 and 4 (and of 4)?

    A linear feasibility problem in the five shares, each printed number a range; sd through E x².
    """
    score = np.arange(5)
    bounds = [
        (score, mean - 0.005, mean + 0.005),
        (score**2, (mean - 0.005) ** 2 + (sd - 0.005) ** 2, (mean + 0.005) ** 2 + (sd + 0.005) ** 2),
        (score >= 3, inflation - 0.0005, inflation + 0.0005),
    ]
    printed = f"mean {mean:.2f}, sd {sd:.2f}, inflation {100 * inflation:.1f}%"
    if top is not None:
        bounds.append((score == 4, top - 0.0005, top + 0.0005))
        printed += f", fours {100 * top:.1f}%"
    rows = [sign * np.asarray(row, dtype=float) for row, _, _ in bounds for sign in (1, -1)]
    limits = [limit for _, low, high in bounds for limit in (high, -low)]
    found = linprog(np.zeros(5), np.array(rows), limits, np.ones((1, 5)), [1], bounds=(0, 1))
    shares = "shares of 0 to 4: " + ", ".join(f"{100 * x:.0f}%" for x in found.x) if found.success else "none"
    return "some scores have this mean, sd and inflation", printed, shares, found.success


def _table5() -> Iterator[Line]:
    table = published.table5().set_index("feature")
    for name, row in table.iterrows():
        unit, digits = (0.1, 1) if row["correct"] > 1 else (0.001, 3)
        gap = row["correct"] - row["wrong"]
        printed, computed = f"{row['difference']:+.{digits}f}", f"{gap:+.{digits}f}"
        yield f"{name.replace('_', ' ')}: Δ", printed, computed, abs(gap - row["difference"]) < 1.5 * unit + _EDGE

    correct, wrong = table.loc["math_symbol_density", ["correct", "wrong"]]
    more = correct / wrong - 1
    yield "“nearly 70% more” notation", "70%", f"{100 * more:.0f}%", 0.6 < more < 0.7

    mean, counts = average_of_table5("edit_similarity"), published.table6().set_index("edit_type")["n"]
    low, high = (sum(counts[kind] * SIMILARITY[kind][end] for kind in SIMILARITY) / N_CHAINS for end in (0, 1))
    line = "mean similarity fits Table 6's bounds"
    yield line, f"{mean:.3f}", f"{low:.3f} to {high:.3f}", low <= mean <= high

    others = (wrong * 36 - 0.181 * 8) / 28
    line = "density of the 28 o4-mini misses that some judge catches (8 missed by all have 0.181)"
    note = "the universally missed steps have more notation than o4-mini's other misses, not less"
    yield line, f"{wrong:.3f}", f"{others:.3f}", 0 <= others <= 1, note


def _table6() -> Iterator[Line]:
    table = published.table6()
    for row in table.itertuples():
        name = row.edit_type.replace("_", " ")
        yield _count_line(f"{name}: detection at n = {row.n}", row.detection, row.n)
    yield "N sums to the 450 items", "450", str(table["n"].sum()), table["n"].sum() == N_CHAINS

    caught = sum(possible_counts(row.detection, row.n)[0] for row in table.itertuples())
    computed = f"{caught} of {N_CHAINS} = {100 * caught / N_CHAINS:.1f}%"
    holds = caught == published.exp1_outcomes()["o4-mini"].sum()
    yield "weighted mean is o4-mini's rate in Table 1", "92.0%", computed, holds
