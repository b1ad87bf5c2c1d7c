"""The printed figures, the rebuilt Exp 1 outcomes, and the audit's arithmetic."""

from math import comb

import numpy as np
import pytest
from scipy import stats as scipy_stats

from c2faith.analysis import metrics, published
from c2faith.analysis.audit import INCONSISTENT, UNDETERMINED, audit, possible_counts
from c2faith.analysis.claims import claims, mcnemar_range
from c2faith.analysis.published import JUDGES, N_CHAINS
from c2faith.analysis.stats import mcnemar

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def lines():
    return audit()


@pytest.fixture(scope="module")
def claimed():
    return claims().set_index("line")


# The rebuilt outcomes


def test_the_outcomes_are_450_by_3_bools():
    outcomes = published.exp1_outcomes()
    assert outcomes.shape == (450, 3)
    assert list(outcomes.columns) == ["GPT-4.1", "DeepSeek-V3.1", "o4-mini"]
    assert set(outcomes.dtypes) == {np.dtype(bool)}


def test_the_outcomes_give_the_printed_rates_and_deviations():
    outcomes = published.exp1_outcomes()
    printed = published.table1().set_index("judge_id")
    for judge in JUDGES:
        assert f"{outcomes[judge].mean():.1%}" == f"{printed.loc[judge, 'detection']:.1%}"
        assert f"{outcomes[judge].std(ddof=0):.3f}" == f"{printed.loc[judge, 'sd']:.3f}"


def test_the_outcomes_give_the_printed_tests():
    """Bonferroni over three pairs: p < 0.001 for both against GPT-4.1, 0.090 uncorrected between the others."""
    outcomes = published.exp1_outcomes()
    assert 3 * mcnemar(outcomes["DeepSeek-V3.1"], outcomes["GPT-4.1"]).p < 0.001
    assert 3 * mcnemar(outcomes["o4-mini"], outcomes["GPT-4.1"]).p < 0.001
    assert f"{mcnemar(outcomes['DeepSeek-V3.1'], outcomes['o4-mini']).p:.3f}" == "0.090"


def test_the_outcomes_give_the_printed_intervals_to_within_one_item():
    table = metrics.detection(published.exp1_frame()).set_index("judge_id")
    printed = published.table1().set_index("judge_id")
    for end in ("detection_low", "detection_high"):
        assert (table[end] - printed[end]).abs().max() < 1.5 / N_CHAINS


def test_the_outcomes_give_the_printed_failure_patterns():
    """Section 5.5.2: 79.8% caught by all, 1.8% by none, 40, 4 and 8 missed by one judge only."""
    table = metrics.failure_patterns(published.exp1_frame()).set_index("missed_by")
    assert f"{table.loc['', 'share']:.1%}" == "79.8%"
    assert f"{table.loc[' + '.join(JUDGES), 'share']:.1%}" == "1.8%"
    assert table.loc[["GPT-4.1", "o4-mini", "DeepSeek-V3.1"], "count"].to_list() == [40, 4, 8]


def test_the_printed_tables_are_shares_and_counts():
    assert published.table2().set_index("judge_id").loc["o4-mini", "exact"] == 0.68
    assert len(published.table3()) == 12
    assert published.table3()["stars"].to_list()[:5] == ["**", "**", "***", "***", ""]
    assert published.table6()["n"].sum() == N_CHAINS
    assert published.table5()["feature"].is_unique


# Counts behind a percentage


@pytest.mark.parametrize("n", [37, 130, 402, 450])
def test_possible_counts_are_those_that_print_as_the_share(n):
    """Against printing every count; ties of rounding (none here) would be kept."""
    for share in (0.576, 0.746, 0.811, 0.931, 1.0, 0.0):
        assert possible_counts(share, n) == [k for k in range(n + 1) if f"{k / n:.1%}" == f"{share:.1%}"]


def test_half_units_count_as_either_digit():
    assert possible_counts(0.1, 8, digits=1) == [1]  # 0.125
    assert possible_counts(0.062, 16) == [1]  # 1/16 = 0.0625
    assert possible_counts(0.063, 16) == [1]


# The range of McNemar's p over all pairings


def brute_force(first, second, n):
    """All ways for two judges to share `both` right items."""
    p = []
    for both in range(max(0, first + second - n), min(first, second) + 1):
        a = [True] * first + [False] * (n - first)
        b = [True] * both + [False] * (first - both) + [True] * (second - both)
        p.append(mcnemar(a, b + [False] * (n - len(b))).p)
    return min(p), max(p)


@pytest.mark.parametrize(
    "first, second, n", [(7, 4, 10), (4, 7, 10), (5, 5, 9), (9, 9, 9), (0, 3, 12), (11, 2, 12)]
)
def test_the_range_of_p_is_that_of_all_pairings(first, second, n):
    assert mcnemar_range(first, second, n) == pytest.approx(brute_force(first, second, n))


def test_the_real_pairing_lies_inside_the_range():
    outcomes = published.exp1_outcomes()
    low, high = mcnemar_range(426, 414, 450)
    assert low <= mcnemar(outcomes["DeepSeek-V3.1"], outcomes["o4-mini"]).p <= high


# The audit


def verdict_of(lines, part, line):
    found = lines[(lines["part"] == part) & lines["line"].str.startswith(line)]
    assert len(found) == 1, found
    return found.iloc[0]


def test_what_does_not_fit_is_named(lines):
    """74.6% and 64.1% are no counts of 450 (335/450 = 74.4, 336/450 = 74.7), and ρ = 0.151 has p = 0.0013."""
    wrong = lines[lines["verdict"] == INCONSISTENT]
    assert wrong[["part", "line"]].apply(tuple, axis=1).to_list() == [
        ("Table 3, DeepSeek-V3.1 at 70%", "inflation at n = 450"),
        ("Table 3, DeepSeek-V3.1 at 70%", "share of scores of 4 (section 5.4.4) at n = 450"),
        ("Table 3, o4-mini at 10%", "stars of ρ at n = 450"),
    ]
    assert "335 of 449" in wrong["note"].iloc[0]
    assert "288 of 449" in wrong["note"].iloc[1]
    t = 0.151 * np.sqrt(448 / (1 - 0.151**2))
    assert 2 * scipy_stats.t.sf(t, 448) == pytest.approx(0.00132, abs=1e-5)


def test_counts_behind_table2(lines):
    row = verdict_of(lines, "Table 2, GPT-4.1", "within 1")
    assert (row["printed"], row["computed"]) == ("72.9%", "293 of 402")


def test_the_implied_target_by_hand(lines):
    """GPT-4.1: (2.58 · 450 − 1.84 · 402) / 48 − 1 = 421.32 / 48 − 1 = 7.78."""
    row = verdict_of(lines, "Table 2, GPT-4.1", "mean target of the 48 missed chains")
    low, high = map(float, row["computed"].split(" to "))
    assert low <= 7.78 <= high
    assert high - low < 0.3


def test_table6_adds_up_to_table1(lines):
    """121 + 111 + 147 + 30 + 5 = 414."""
    row = verdict_of(lines, "Table 6", "weighted mean")
    assert row["computed"] == "414 of 450 = 92.0%"


def test_every_table_and_judge_is_audited(lines):
    for judge in JUDGES:
        assert (lines["part"] == f"Table 2, {judge}").sum() == 8
        for level in ("10%", "30%", "50%", "70%"):
            assert (lines["part"] == f"Table 3, {judge} at {level}").sum() >= 5
    assert set(lines["verdict"]) <= {"consistent", INCONSISTENT, UNDETERMINED}


# The claims


def test_the_ensemble_claim(claimed):
    """DeepSeek or o4-mini catch 450 − 8 − 1 = 441, exactly 98.0%; all three 442; neither is above 98% for sure."""
    row = claimed.loc["any flag of DeepSeek-V3.1 + o4-mini detects above 98%"]
    assert row["computed"].startswith("441 of 450 = 98.0%")
    assert row["verdict"] == UNDETERMINED
    assert claimed.loc["any flag of GPT-4.1 + o4-mini detects above 98%", "verdict"] == INCONSISTENT


def test_o4_mini_has_not_the_lowest_error_count(claimed):
    row = claimed.loc["o4-mini has the lower overall error count"]
    assert row["verdict"] == INCONSISTENT
    assert "DeepSeek-V3.1 misses 24, o4-mini misses 36" in row["computed"]


def test_what_the_intervals_do_not_separate_is_undetermined(claimed):
    assert claimed.loc["DeepSeek-V3.1 detects more than o4-mini", "verdict"] == UNDETERMINED
    assert claimed.loc["GPT-4.1 above DeepSeek-V3.1 in exact match", "verdict"] == UNDETERMINED
    assert claimed.loc["o4-mini above GPT-4.1 in exact match", "verdict"] == "consistent"


def test_unique_failures_are_a_fair_coin():
    """4 against 8 of 12: two-sided 2 · P(≤ 4) = 2 · 794 / 4096 = 0.388."""
    tail = sum(comb(12, k) for k in range(5))
    assert scipy_stats.binomtest(4, 12).pvalue == pytest.approx(2 * tail / 2**12)
