"""Intervals, paired tests, corrections and correlation, against worked values and outside references."""

import warnings

import numpy as np
import pytest
from scipy import stats as scipy_stats
from sklearn.metrics import matthews_corrcoef, roc_auc_score
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from c2faith.analysis.resampling import Resamples, estimate, means, ratio
from c2faith.analysis.stats import (
    auroc,
    bonferroni,
    bootstrap_ci,
    harmonic_mean,
    holm,
    matthews,
    mcnemar,
    rank_correlation,
    spearman_p,
    stars,
    wilson,
)

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def random():
    return np.random.default_rng(7)


def spearman(x, y):
    return rank_correlation(np.ones((len(x), 1)), np.array(x), np.array(y))[0]


def weights(resamples, chains):
    """How often each record occurs in the sample and in every draw, from the chain counts."""
    return resamples.counts[resamples.chains.get_indexer(chains)]


# Resampling


def test_a_resample_draws_as_many_chains_as_there_are():
    resamples = Resamples.draw(["b", "a", "b", "c"], draws=500)
    assert list(resamples.chains) == ["a", "b", "c"]
    assert (resamples.counts[:, 0] == 1).all()
    assert (resamples.counts.sum(axis=0) == 3).all()
    assert len(np.unique(resamples.counts, axis=1).T) == 10  # all (1,1,1), (3,0,0)…: C(5,2) multisets


def test_the_same_seed_gives_the_same_resamples_whatever_the_order_of_records():
    one, other = Resamples.draw(["a", "b", "c"], 50, 3), Resamples.draw(["c", "a", "b"], 50, 3)
    assert (one.counts == other.counts).all()
    assert (one.counts != Resamples.draw(["a", "b", "c"], 50, 4).counts).any()


def test_records_of_a_chain_move_together(random):
    """Two records that cancel within every chain have a mean of 0 in each resample."""
    chains = np.repeat(np.arange(30), 2)
    values = np.repeat(random.normal(size=30), 2) * np.tile([1, -1], 30)
    clustered = bootstrap_ci(values, clusters=chains, draws=400)
    alone = bootstrap_ci(values, draws=400)
    assert clustered.low == pytest.approx(0, abs=1e-12) == clustered.high
    assert alone.high - alone.low > 0.1


def test_totals_and_masses_equal_sums_over_repeated_records(random):
    chains = random.integers(0, 8, 25)
    values, cells = random.normal(size=25), random.integers(0, 4, 25)
    resamples = Resamples.draw(chains, draws=20)
    times = weights(resamples, chains)
    assert resamples.totals(chains, {"x": values})["x"] == pytest.approx(values @ times)
    expected = np.array([times[cells == cell].sum(axis=0) for cell in range(4)])
    assert resamples.masses(chains, cells, 4) == pytest.approx(expected)


def test_means_are_ratios_of_sums_in_every_draw(random):
    """Outside of its mask an amount may be anything; the counts say what each mean is over."""
    chains, values, among = random.integers(0, 8, 25), random.normal(size=25), random.random(25) < 0.5
    resamples = Resamples.draw(chains, draws=20)
    times = weights(resamples, chains)
    found = means(resamples, chains, {"all": values, "some": (np.where(among, values, np.nan), among)})
    assert found["all"].columns == pytest.approx(values @ times / times.sum(axis=0))
    assert found["some"].columns == pytest.approx((values * among) @ times / (among @ times))
    assert (found["all"].n, found["some"].n) == (25, among.sum())
    nothing = means(resamples, chains, {"none": (values, np.zeros(25, dtype=bool))})["none"]
    assert np.isnan(nothing.columns).all()
    assert nothing.n == 0


# Bootstrap intervals


def test_the_interval_of_a_rate_is_the_binomial_one():
    """Resampling 0/1 outcomes draws Binomial(n, p): its quantiles, to within one item."""
    outcomes = np.repeat([1, 0], [372, 78])
    found = bootstrap_ci(outcomes)
    low, high = scipy_stats.binom.ppf([0.025, 0.975], 450, 372 / 450) / 450
    assert found.value == 372 / 450
    assert found.low == pytest.approx(low, abs=1.01 / 450)
    assert found.high == pytest.approx(high, abs=1.01 / 450)


def test_the_interval_agrees_with_scipy(random):
    values = random.exponential(size=200)
    theirs = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=10_000, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    ours = bootstrap_ci(values)
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.05 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.05 * width)


def test_any_statistic_can_be_resampled(random):
    values = random.normal(size=60)
    mean = bootstrap_ci(values, lambda sample: float(np.mean(sample)), draws=200)
    assert mean.low == pytest.approx(bootstrap_ci(values, draws=200).low)
    pairs = np.column_stack([values, values + random.normal(size=60)])
    found = bootstrap_ci(pairs, lambda p: scipy_stats.spearmanr(*p.T).statistic, draws=200)
    assert found.value == pytest.approx(spearman(*pairs.T))
    assert found.low < found.value < found.high


def test_unanswered_records_are_left_out_and_counted():
    found = bootstrap_ci([1, 0, np.nan, 1, np.nan], draws=50)
    assert (found.value, found.n, found.unanswered) == (2 / 3, 3, 2)


@pytest.mark.parametrize("values, n, unanswered", [([], 0, 0), ([np.nan, np.nan], 0, 2)])
@pytest.mark.parametrize("statistic", [np.mean, np.median])
def test_nothing_answered_is_nan(values, n, unanswered, statistic):
    found = bootstrap_ci(values, statistic, draws=50)
    assert np.isnan([found.value, found.low, found.high]).all()
    assert (found.n, found.unanswered) == (n, unanswered)


def test_one_record_has_a_value_and_no_interval():
    found = bootstrap_ci([1.0], draws=50)
    assert found.value == 1
    assert np.isnan([found.low, found.high]).all()


def test_draws_without_a_value_are_left_out():
    found = estimate(np.array([0.5, np.nan, 0.4, 0.6, np.nan]), n=10)
    assert 0.4 <= found.low <= found.high <= 0.6


@pytest.mark.parametrize("successes, n", [(0, 10), (10, 10), (372, 450), (1, 1)])
def test_wilson_agrees_with_statsmodels(successes, n):
    assert wilson(successes, n) == pytest.approx(proportion_confint(successes, n, method="wilson"))


def test_wilson_of_nothing_is_nan():
    assert np.isnan(wilson(0, 0)).all()


# McNemar's test


def test_mcnemar_agrees_with_statsmodels(random):
    a, b = random.random(300) < 0.8, random.random(300) < 0.7
    table = [[(a & b).sum(), (a & ~b).sum()], [(~a & b).sum(), (~a & ~b).sum()]]
    found = mcnemar(a, b)
    assert found.p == pytest.approx(statsmodels_mcnemar(table, exact=False, correction=True).pvalue)
    assert found.p_exact == pytest.approx(statsmodels_mcnemar(table, exact=True).pvalue)
    assert (found.b, found.c) == (table[0][1], table[1][0])


def test_mcnemar_of_the_papers_pair():
    """27 items only DeepSeek catches, 15 only o4-mini: χ² = (|27 − 15| − 1)² / 42 = 2.881, printed p = 0.090."""
    found = mcnemar([True] * 27 + [False] * 15 + [True] * 408, [False] * 27 + [True] * 15 + [True] * 408)
    assert found.chi2 == pytest.approx(121 / 42)
    assert f"{found.p:.3f}" == "0.090"


def test_mcnemar_is_symmetric_and_1_without_a_difference():
    a = np.array([True, True, False])
    assert mcnemar(a, ~a).p == mcnemar(~a, a).p
    assert (mcnemar(a, a).p, mcnemar(a, a).p_exact) == (1, 1)
    tied = mcnemar([True, False], [False, True])  # as many each way: no correction past zero, as in R
    assert (tied.chi2, tied.p) == (0, 1)


def test_mcnemar_of_nothing_is_nan_and_of_different_items_an_error():
    assert np.isnan(mcnemar([], []).p)
    with pytest.raises(ValueError, match="same items"):
        mcnemar([True], [True, False])


# Corrections


@pytest.mark.parametrize("ours, name", [(bonferroni, "bonferroni"), (holm, "holm")])
def test_corrections_agree_with_statsmodels(ours, name, random):
    p = np.concatenate([random.random(12) ** 3, [0.02, 0.02, 1.0, 0.0]])
    assert ours(p) == pytest.approx(multipletests(p, method=name)[1])


@pytest.mark.parametrize("correction", [bonferroni, holm])
def test_an_undefined_p_is_no_test(correction):
    found = correction([0.01, np.nan, 0.04])
    assert np.isnan(found[1])
    assert found[[0, 2]] == pytest.approx(correction([0.01, 0.04]))
    assert np.isnan(correction([np.nan])).all()
    assert len(correction([])) == 0


# Correlation and separation


@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_spearman_agrees_with_scipy_with_and_without_ties(levels, random):
    x, y = random.integers(0, levels, 80), random.integers(0, 5, 80)
    theirs = scipy_stats.spearmanr(x, y)
    assert spearman(x, y) == pytest.approx(theirs.statistic)
    assert spearman_p(spearman(x, y), 80) == pytest.approx(theirs.pvalue)


def test_spearman_of_a_constant_is_nan_not_zero():
    assert np.isnan(spearman([3, 3, 3], [1, 2, 3]))
    assert np.isnan(spearman([], []))
    assert np.isnan(spearman_p(0.5, 2))
    assert spearman_p(1.0, 10) == 0


def test_resampled_correlations_equal_scipy_on_the_repeated_records(random):
    chains = np.repeat(np.arange(15), 2)
    x, y = random.integers(0, 5, 30), random.normal(size=30).round(1)
    resamples = Resamples.draw(chains, draws=25)
    columns = rank_correlation(weights(resamples, chains), x, y)
    for place, times in enumerate(weights(resamples, chains).T.astype(int)):
        expected = scipy_stats.spearmanr(np.repeat(x, times), np.repeat(y, times)).statistic
        assert columns[place] == pytest.approx(expected)


def test_stars_are_the_papers():
    assert [stars(p) for p in (0.0009, 0.001, 0.009, 0.01, np.nan)] == ["***", "**", "**", "", ""]


def test_auroc_agrees_with_scikit_learn_on_ties(random):
    truth, score = random.integers(0, 2, 90), random.integers(0, 12, 90) / 12
    levels, codes = np.unique(score, return_inverse=True)
    mass = [np.bincount(codes[truth == side], minlength=len(levels))[:, None] for side in (1, 0)]
    assert auroc(*mass)[0] == pytest.approx(roc_auc_score(truth, score))


def test_auroc_without_one_side_is_nan():
    assert np.isnan(auroc(np.ones((3, 1)), np.zeros((3, 1)))[0])


def test_matthews_agrees_with_scikit_learn(random):
    truth, said = random.integers(0, 2, 70), random.integers(0, 2, 70)
    cells = [((truth == t) & (said == s)).sum() for t, s in ((1, 1), (1, 0), (0, 1), (0, 0))]
    assert matthews(*np.array(cells, dtype=float)[:, None])[0] == pytest.approx(matthews_corrcoef(truth, said))


def test_matthews_of_an_empty_margin_is_nan():
    assert np.isnan(matthews(*np.array([[5.0], [0], [5], [0]])))


def test_harmonic_mean_agrees_with_scipy():
    assert harmonic_mean(np.array([0.6]), np.array([0.3]))[0] == pytest.approx(scipy_stats.hmean([0.6, 0.3]))
    assert harmonic_mean(np.array([0.0]), np.array([0.0]))[0] == 0 == scipy_stats.hmean([0, 0])
    assert np.isnan(harmonic_mean(np.array([np.nan]), np.array([0.0]))[0])


def test_a_quotient_of_nothing_is_nan_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(ratio(np.array([0.0, 1.0]), np.array([0.0, 0.0]))).all()
