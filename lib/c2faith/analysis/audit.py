"""An audit of the paper's printed tables: can the numbers stand together?

A printed number is a range, half a unit of its last digit to each side. A line is *consistent* if some counts or
scores give all that it names, *inconsistent* if none do, *undetermined* if what is printed does not decide. Nothing
here says why a line is inconsistent: a few items fewer than 450 would explain most of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil, floor
from typing import NamedTuple

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


class Line(NamedTuple):
    """One line of the audit."""

    part: str
    line: str
    printed: str
    computed: str
    verdict: str
    note: str = ""


def verdict(holds: bool) -> str:
    """Consistent or not."""
    return CONSISTENT if holds else INCONSISTENT


def possible_counts(share: float, n: int, digits: int = 3) -> list[int]:
    """Counts k of which k/n prints as `share`, rounded to so many digits (3: a percentage with one decimal).

    >>> possible_counts(0.576, 450), possible_counts(0.746, 450)
    ([259], [])
    """
    half = 0.5 * 10**-digits + _EDGE
    return list(range(max(0, ceil((share - half) * n)), min(n, floor((share + half) * n)) + 1))


def audit() -> pd.DataFrame:
    """Every line of the audit of Tables 2, 3, 5 and 6: `part`, `line`, `printed`, `computed`, `verdict`, `note`."""
    parts: tuple[Callable[[], Iterator[Line]], ...] = (_table2, _table3, _table5, _table6)
    return pd.DataFrame([line for part in parts for line in part()], columns=list(Line._fields))


def _count_line(part: str, line: str, share: float, n: int) -> Line:
    """Whether a printed share is a count out of n; if not, the nearest smaller n that allows one."""
    counts = possible_counts(share, n)
    if counts:
        return Line(part, line, f"{100 * share:.1f}%", _numbers(counts) + f" of {n}", CONSISTENT)
    fewer = next(m for m in range(n - 1, 0, -1) if possible_counts(share, m))
    note = f"no count of {n}; {_numbers(possible_counts(share, fewer))} of {fewer} would do"
    return Line(part, line, f"{100 * share:.1f}%", "none", INCONSISTENT, note)


def _numbers(counts: list[int]) -> str:
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _table2() -> Iterator[Line]:
    for row in published.table2().itertuples():
        part = f"Table 2, {row.judge_id}"
        detected = possible_counts(row.detection, N_CHAINS)[0]
        exact = possible_counts(row.exact, N_CHAINS)[0]
        yield _count_line(part, "exact match at n = 450", row.exact, N_CHAINS)
        yield _count_line(part, "detection at n = 450", row.detection, N_CHAINS)
        yield _count_line(part, f"within 1 at the detected n = {detected}", row.within_1, detected)
        yield _count_line(part, f"within 2 at the detected n = {detected}", row.within_2, detected)
        within = [possible_counts(share, detected)[0] for share in (row.within_1, row.within_2)]
        yield Line(
            part,
            "exact ≤ within 1 ≤ within 2 ≤ detected",
            "",
            f"{exact}, {within[0]}, {within[1]}, {detected}",
            verdict(exact <= within[0] <= within[1] <= detected),
        )
        near = within[0] - exact + 2 * (within[1] - within[0])
        far = detected - within[1]
        least = (near + 3 * far) / detected
        yield Line(
            part,
            "MAE det. is at least what the within-k counts need",
            f"{row.mae_detected:.2f}",
            f"≥ {least:.2f}",
            verdict(row.mae_detected + 0.005 >= least),
            f"the {far} picks farther than 2 are {(row.mae_detected * detected - near) / far:.1f} steps off",
        )
        yield Line(
            part,
            "|mean signed error| ≤ MAE det.",
            f"{row.signed_error:+.2f}",
            f"early part {(row.mae_detected - row.signed_error) / 2:.2f}, "
            f"late part {(row.mae_detected + row.signed_error) / 2:.2f}",
            verdict(abs(row.signed_error) <= row.mae_detected + 0.01),
        )
        yield _implied_target(part, row.mae_all, row.mae_detected, detected)


def _implied_target(part: str, mae_all: float, mae_detected: float, detected: int) -> Line:
    """MAE all counts a missed chain as j + 1, so both MAEs give the mean target of the missed chains.

    Targets lie in the middle region of chains of 8 to 30 steps: 2 … 26, counted from 0.
    """
    missed = N_CHAINS - detected
    low, high = (
        ((mae_all + half) * N_CHAINS - (mae_detected - half) * detected) / missed - 1 for half in (-0.005, 0.005)
    )
    average = _average_target()
    return Line(
        part,
        f"mean target of the {missed} missed chains behind MAE all and MAE det.",
        f"{mae_all:.2f}, {mae_detected:.2f}",
        f"{low:.1f} to {high:.1f}",
        verdict(high >= 2 and low <= 26),
        f"all targets: about {average - 1:.0f} or {average:.0f} by Table 5, if positions count from 1 or from 0",
    )


def _average_target() -> float:
    """Mean relative position times mean length, over Table 5's 414 correct and 36 wrong items."""
    table = published.table5().set_index("feature")
    weights = [414 / N_CHAINS, 36 / N_CHAINS]
    position, length = (
        table.loc[name, ["correct", "wrong"]] @ weights for name in ("relative_position", "chain_length")
    )
    return float(position * length)


def _table3() -> Iterator[Line]:
    for row in published.table3().itertuples():
        part = f"Table 3, {row.judge_id} at {row.deletion_rate:.0%}"
        at = (row.judge_id, row.deletion_rate)
        yield _count_line(part, "inflation at n = 450", row.inflation, N_CHAINS)
        if at in SHARES_OF_4:
            yield _count_line(part, "share of scores of 4 (section 5.4.4) at n = 450", SHARES_OF_4[at], N_CHAINS)
        gap = row.mean - row.reference_mean
        yield Line(
            part,
            "bias = mean − reference mean",
            f"{row.bias:+.2f}",
            f"{gap:+.2f}",
            verdict(abs(gap - row.bias) < 0.016),
        )
        yield Line(
            part,
            "MAE ≥ |bias|",
            f"{row.mae:.2f}",
            f"≥ {abs(row.bias):.2f}",
            verdict(row.mae >= abs(row.bias) - 0.01),
        )
        yield _distribution(part, row.mean, row.sd, row.inflation, SHARES_OF_4.get(at))
        yield _stars(part, row.rho, row.stars)
        if at in P_IN_TEXT:
            low, high = _p_range(row.rho)
            printed = P_IN_TEXT[at]
            yield Line(
                part,
                "p of ρ (section 5.4.4) at n = 450",
                f"{printed:.3f}",
                f"{low:.3f} to {high:.3f}",
                verdict(low - 0.0005 - _EDGE <= printed <= high + 0.0005 + _EDGE),
            )


def _p_range(rho: float) -> tuple[float, float]:
    """Least and greatest p at n = 450 of the ρ that print as this one."""
    p = sorted(float(spearman_p(value, N_CHAINS)) for value in (rho - 0.0005, rho + 0.0005))
    return p[0], p[1]


def _stars(part: str, rho: float, stars: str) -> Line:
    """The caption: ** p < .01, *** p < .001, none: p > .05 (DeepSeek's)."""
    low, high = _p_range(rho)
    claimed = {"***": (0, 0.001), "**": (0.001, 0.01), "": (0.05, 1)}[stars]
    holds = low < claimed[1] and high >= claimed[0]
    words = {"***": "p < 0.001", "**": "p < 0.01", "": "p > 0.05"}[stars]
    return Line(
        part, "stars of ρ at n = 450", f"{rho:.3f}{stars}, {words}", f"p = {low:.2g} to {high:.2g}", verdict(holds)
    )


def _distribution(part: str, mean: float, sd: float, inflation: float, top: float | None) -> Line:
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
    return Line(part, "some scores have this mean, sd and inflation", printed, shares, verdict(found.success))


def _table5() -> Iterator[Line]:
    table = published.table5().set_index("feature")
    for name, row in table.iterrows():
        unit = 0.1 if row["correct"] > 1 else 0.001
        gap, digits = row["correct"] - row["wrong"], 1 if unit == 0.1 else 3
        holds = abs(gap - row["difference"]) < 1.5 * unit + _EDGE
        yield Line(
            "Table 5",
            f"{name.replace('_', ' ')}: Δ",
            f"{row['difference']:+.{digits}f}",
            f"{gap:+.{digits}f}",
            verdict(holds),
        )
    correct, wrong = table.loc["math_symbol_density", ["correct", "wrong"]]
    yield Line(
        "Table 5",
        "“nearly 70% more” notation",
        "70%",
        f"{100 * (correct / wrong - 1):.0f}%",
        verdict(0.6 < correct / wrong - 1 < 0.7),
    )
    mean = float(table.loc["edit_similarity", ["correct", "wrong"]] @ [414 / N_CHAINS, 36 / N_CHAINS])
    counts = published.table6().set_index("edit_type")["n"]
    low, high = (sum(counts[kind] * SIMILARITY[kind][end] for kind in SIMILARITY) / N_CHAINS for end in (0, 1))
    yield Line(
        "Table 5",
        "mean similarity fits Table 6's bounds",
        f"{mean:.3f}",
        f"{low:.3f} to {high:.3f}",
        verdict(low <= mean <= high),
    )
    others = (wrong * 36 - 0.181 * 8) / 28
    yield Line(
        "Table 5",
        "density of the 28 o4-mini misses that some judge catches (8 missed by all have 0.181)",
        f"{wrong:.3f}",
        f"{others:.3f}",
        verdict(0 <= others <= 1),
        "the universally missed steps have more notation than o4-mini's other misses, not less",
    )


def _table6() -> Iterator[Line]:
    table = published.table6()
    for row in table.itertuples():
        yield _count_line(
            "Table 6", f"{row.edit_type.replace('_', ' ')}: detection at n = {row.n}", row.detection, row.n
        )
    yield Line(
        "Table 6", "N sums to the 450 items", "450", str(table["n"].sum()), verdict(table["n"].sum() == N_CHAINS)
    )
    caught = sum(possible_counts(row.detection, row.n)[0] for row in table.itertuples())
    yield Line(
        "Table 6",
        "weighted mean is o4-mini's rate in Table 1",
        "92.0%",
        f"{caught} of {N_CHAINS} = {100 * caught / N_CHAINS:.1f}%",
        verdict(caught == int(published.exp1_outcomes()["o4-mini"].sum())),
    )
