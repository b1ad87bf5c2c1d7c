"""Which of the paper's claims survive intervals? For each, what its printed numbers can and cannot decide.

Where judges' verdicts on single items are not published, every way of pairing them that the counts allow is
considered. A claim is *consistent* if it survives even the worst of them, *inconsistent* if the printed numbers
contradict it, *undetermined* otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy import stats as scipy_stats

from c2faith.analysis import published
from c2faith.analysis.audit import Line, average_of_table5, possible_counts, written
from c2faith.analysis.published import JUDGES, N_CHAINS
from c2faith.analysis.stats import bootstrap_ci, mcnemar, wilson

GPT, DEEPSEEK, O4 = JUDGES
PAIRS = 3
FARTHEST = 26
"""The farthest a pick can lie from its target: the longest chain has 30 steps, its last target is 26."""


def claims() -> pd.DataFrame:
    """Every claim with what can be computed of it, in the columns of `audit.audit`."""
    inverts = (
        "the ranking inverts between detection and localization",
        "DeepSeek leads Exp 1, o4-mini Exp 2",
        "o4-mini leads Exp 2 however items pair; Exp 1 does not tell DeepSeek from o4-mini (p = 0.090)",
        None,
    )
    parts = [
        ("Exp 1", _detection()),
        ("Exp 2", _localization()),
        ("Exp 1 and 2", [inverts]),
        ("Exp 2", _early_bias()),
        ("Coverage", _coverage()),
        ("Discussion", _range_of_rho()),
        ("Section 5.5.2", _failures()),
        ("Table 6", _edit_types()),
        ("Table 4", _rank()),
    ]
    return pd.concat([written({part: lines}) for part, lines in parts], ignore_index=True)


def mcnemar_range(first: int, second: int, n: int) -> tuple[float, float]:
    """Least and greatest p of McNemar's test (continuity-corrected) over all pairings of two counts out of n.

    Of b items that only the first judge gets right and c that only the second does, b − c is known, and b + c
    lies between |b − c| and what n leaves room for.
    """
    gap = first - second
    fewest, most = abs(gap), min(first, n - second) + min(second, n - first)
    totals = np.arange(fewest, most + 1, 2)
    p = scipy_stats.chi2.sf(max(abs(gap) - 1, 0) ** 2 / np.maximum(totals, 1), 1)
    return float(p.min()), float(p.max())


def _if(survives: bool) -> bool | None:
    """A claim that the numbers cannot refute: consistent, or undetermined."""
    return True if survives else None


def _detection() -> Iterator[Line]:
    caught = published.exp1_outcomes()
    for judge, other in ((DEEPSEEK, GPT), (O4, GPT), (DEEPSEEK, O4)):
        test = mcnemar(caught[judge], caught[other])
        gap = bootstrap_ci(caught[judge].astype(float) - caught[other])
        points = f"{100 * gap.value:+.1f} points [{100 * gap.low:+.1f}, {100 * gap.high:+.1f}]"
        yield (
            f"{judge} detects more than {other}",
            "p = 0.090 (ns), yet ranked first" if other == O4 else "p < 0.001",
            f"p = {test.p:.2g}, exact {test.p_exact:.2g}; {points}",
            _if(min(1, PAIRS * test.p) < 0.05),
            "no clean twins were judged: a judge that flags everything would lead",
        )


def _localization() -> Iterator[Line]:
    table = published.table2().set_index("judge_id")
    for column, label in (("exact", "exact match"), ("detection", "Exp 2 detection")):
        counts = {judge: possible_counts(table.loc[judge, column], N_CHAINS)[0] for judge in JUDGES}
        for judge, other in ((O4, GPT), (O4, DEEPSEEK), (GPT, DEEPSEEK)):
            low, high = mcnemar_range(counts[judge], counts[other], N_CHAINS)
            yield (
                f"{judge} above {other} in {label}",
                f"{100 * table.loc[judge, column]:.1f}% against {100 * table.loc[other, column]:.1f}%",
                f"McNemar's p between {low:.2g} and {high:.2g}, as the items pair",
                _if(high * PAIRS < 0.05),
                "Bonferroni over three pairs",
            )


def _early_bias() -> Iterator[Line]:
    """|error| ≤ 26 and its mean is MAE det., so E error² ≤ 26 · MAE: a bound on the standard error."""
    length, share = average_of_table5("chain_length"), average_of_table5("relative_position")
    for row in published.table2().itertuples():
        detected, exact = (possible_counts(count, N_CHAINS)[0] for count in (row.detection, row.exact))
        error = np.sqrt(FARTHEST * row.mae_detected / detected)
        p = float(2 * scipy_stats.norm.sf(abs(row.signed_error) / error))
        null = [
            (1 - exact / detected) * length / (length - 1) * ((length - 1) / 2 - target)
            for target in (share * length - 1, share * length)
        ]
        yield (
            f"{row.judge_id} predicts too early",
            f"{row.signed_error:+.2f} steps",
            f"p ≤ {p:.2g} against 0; even misses would give about {null[0]:+.2f} or {null[1]:+.2f}",
            _if(p * PAIRS < 0.05 and row.signed_error < min(null) - 1.96 * error),
            "targets lie late in their chains, so misses look early by themselves: about as much as given, if "
            "positions count from 1 or from 0",
        )


def _coverage() -> Iterator[Line]:
    table = published.table3()
    worst = (table["bias"] / np.sqrt(4 * table["mae"] / N_CHAINS)).min()
    yield (
        "all judges over-credit incomplete chains at every level",
        "bias +0.28 to +1.22",
        f"every bias at least {worst:.1f} of the largest standard error its MAE allows",
        _if(worst > 1.96),
        "errors are at most 4, so E error² ≤ 4 · MAE; the reference is one of the judges' models",
    )
    rho = table.set_index(["judge_id", "deletion_rate"])["rho"]
    for level in published.LEVELS:
        for judge in (GPT, O4):
            z = (np.arctanh(rho[judge, level]) - np.arctanh(rho[DEEPSEEK, level])) / np.sqrt(2 / (N_CHAINS - 3))
            p = 2 * scipy_stats.norm.sf(abs(z))
            yield (
                f"{judge} follows the reference better than {DEEPSEEK} at {level:.0%}",
                f"ρ {rho[judge, level]:.3f} against {rho[DEEPSEEK, level]:.3f}",
                f"p = {p:.2g} (Fisher's z, as if on different chains)",
                _if(p * 8 < 0.05),
                "Bonferroni over eight comparisons",
            )


def _range_of_rho() -> Iterator[Line]:
    rho, line = published.table3()["rho"], "coverage ρ values lie between 0.13 and 0.33"
    computed = f"{rho.min():.3f} to {rho.max():.3f} in Table 3"
    yield line, "0.13 to 0.33", computed, rho.min() >= 0.125, "holds without DeepSeek only"


def _failures() -> Iterator[Line]:
    caught = published.exp1_outcomes()
    misses = (~caught).sum()
    yield (
        "o4-mini has the lower overall error count",
        "“o4-mini's lower overall error count”",
        ", ".join(f"{judge} misses {count}" for judge, count in misses.items()),
        misses.idxmin() == O4,
        "it has the fewest failures of its own (4), not the fewest",
    )
    alone = published.MISSED_BY[(O4,)], published.MISSED_BY[(DEEPSEEK,)]
    p = scipy_stats.binomtest(alone[0], sum(alone)).pvalue
    line = "o4-mini has fewer unique failures than DeepSeek-V3.1"
    yield line, f"{alone[0]} against {alone[1]}", f"exact p = {p:.2f}", _if(p < 0.05)
    for members in ((DEEPSEEK, O4), (GPT, DEEPSEEK), (GPT, O4), JUDGES):
        hit = int(caught[list(members)].any(axis=1).sum())
        low, high = wilson(hit, N_CHAINS)
        yield (
            f"any flag of {' + '.join(members)} detects above 98%",
            "above 98%",
            f"{hit} of {N_CHAINS} = {100 * hit / N_CHAINS:.1f}% [{100 * low:.1f}, {100 * high:.1f}]",
            False if high < 0.98 else _if(low > 0.98),
            "any flag adds false alarms as well; the paper has no clean twins to count them",
        )


def _edit_types() -> Iterator[Line]:
    table = published.table6().set_index("edit_type")
    caught = {kind: possible_counts(row["detection"], int(row["n"]))[0] for kind, row in table.iterrows()}
    moderate = caught["moderate_rewrite"], int(table.loc["moderate_rewrite", "n"])
    rest = sum(caught.values()) - moderate[0], N_CHAINS - moderate[1]
    p = scipy_stats.fisher_exact([[k, n - k] for k, n in (moderate, rest)]).pvalue
    yield (
        "moderate rewrites are the hardest",
        "81.1%",
        f"{moderate[0]} of {moderate[1]} against {rest[0]} of {rest[1]}, Fisher's p = {p:.2g}",
        _if(p * len(table) < 0.05),
        "singled out of five types after the fact: Bonferroni over five",
    )
    low, _ = wilson(5, 5)
    yield "major rewrites are trivially detectable", "100%", f"5 of 5 [{100 * low:.1f}, 100.0]", None


def _rank() -> Iterator[Line]:
    coverage = published.table3().set_index(["deletion_rate", "judge_id"])
    rows = [
        -published.table1().set_index("judge_id")["detection"],
        -published.table2().set_index("judge_id")["exact"],
        -coverage.loc[0.7, "rho"],
        coverage.loc[0.1, "bias"].abs(),
    ]
    means = np.mean([scipy_stats.rankdata(row[list(JUDGES)]) for row in rows], axis=0)
    yield (
        "overall rank: o4-mini 1st, DeepSeek mixed, GPT-4.1 3rd",
        "1st, Mixed, 3rd",
        "mean ranks over the four rows: " + ", ".join(f"{j} {m:.2f}" for j, m in zip(JUDGES, means, strict=True)),
        None,
        "no rule is printed; by mean rank GPT-4.1 is second and DeepSeek third",
    )
