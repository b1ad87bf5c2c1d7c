"""The policy against brute force, against sampling, and at its edges."""

import itertools

import pytest
import torch

from c2faith.cros import policy
from c2faith.cros.rewards import score_rewards, verdict_rewards


def rewards_of(n_steps, target):
    return torch.tensor(verdict_rewards(n_steps, target), dtype=torch.float64)


def logits_of(n_steps, seed=0, scale=1.5):
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(n_steps, generator=generator, dtype=torch.float64)).requires_grad_()


def gradient(value, logits):
    return torch.autograd.grad(value, logits)[0]


def exact_gradient(logits, rewards):
    return gradient(policy.expected_reward(policy.verdict_log_probs(logits), rewards), logits)


def test_three_steps_by_hand():
    hazards = torch.tensor([0.2, 0.5, 0.25])
    # 0.2; 0.8·0.5; 0.8·0.5·0.25; 0.8·0.5·0.75
    probabilities = policy.verdict_log_probs(hazards.logit()).exp()
    assert probabilities.tolist() == pytest.approx([0.2, 0.4, 0.1, 0.3])


@pytest.mark.parametrize("scale", [0.1, 1, 30])
@pytest.mark.parametrize("n_steps", [1, 5, 200])
def test_probabilities_sum_to_one(n_steps, scale):
    log_probs = policy.verdict_log_probs(logits_of(n_steps, scale=scale))
    assert log_probs.exp().sum().item() == pytest.approx(1, abs=1e-12)
    assert torch.isfinite(log_probs).all()


@pytest.mark.parametrize("sign", [-80.0, 80.0])
def test_two_hundred_certain_steps_stay_finite(sign):
    logits = torch.full((200,), sign, requires_grad=True)
    log_probs = policy.verdict_log_probs(logits)
    assert torch.isfinite(log_probs).all()
    rewards = torch.tensor(verdict_rewards(200, 150), dtype=torch.float32)
    slope = gradient(policy.expected_reward(log_probs, rewards) + policy.entropy(log_probs), logits)
    assert torch.isfinite(slope).all()


@pytest.mark.parametrize("target", [-1, 0, 3, 5])
def test_exact_gradient_is_that_of_enumerating_every_outcome(target):
    logits, rewards = logits_of(6), rewards_of(6, target)
    value = torch.zeros((), dtype=torch.float64)
    # All 2^6 ways to flag steps independently; the verdict is the first flag, or −1.
    for flags in itertools.product([0, 1], repeat=6):
        flagged = torch.tensor(flags, dtype=torch.bool)
        probability = torch.where(flagged, logits.sigmoid(), 1 - logits.sigmoid()).prod()
        value = value + probability * rewards[flags.index(1) if any(flags) else -1]
    torch.testing.assert_close(exact_gradient(logits, rewards), gradient(value, logits))


def test_exact_gradient_is_the_mean_of_sampled_reinforce_gradients():
    draws = 100_000
    logits, rewards = logits_of(5), rewards_of(5, 2)
    log_probs = policy.verdict_log_probs(logits)
    scores = torch.stack([torch.autograd.grad(log_probs[v], logits, retain_graph=True)[0] for v in range(6)])
    generator = torch.Generator().manual_seed(1)
    verdicts = torch.multinomial(log_probs.detach().exp(), draws, replacement=True, generator=generator)
    estimates = rewards[verdicts, None] * scores[verdicts]
    error = estimates.std(0) / draws**0.5
    deviation = (estimates.mean(0) - exact_gradient(logits, rewards)).abs() / error
    # Five coordinates within 4 standard errors: fails by chance once in 3000 seeds, and this seed is fixed.
    assert (deviation < 4).all()
    assert (error < 0.01).all()


def test_sampled_groups_estimate_the_exact_gradient():
    logits, rewards = logits_of(5), rewards_of(5, 2)
    groups, n_samples = 20_000, 8
    rows = logits.detach().expand(groups, 5).clone().requires_grad_()
    objective = policy.sampled_objective(
        policy.verdict_log_probs(rows),
        rewards.expand(groups, 6),
        n_samples,
        torch.Generator().manual_seed(0),
        scale=False,
    )
    estimates = gradient(objective.sum(), rows)
    error = estimates.std(0) / groups**0.5
    # The group's own mean as baseline takes 1/8 of the gradient away and adds no bias otherwise.
    deviation = (estimates.mean(0) - (1 - 1 / n_samples) * exact_gradient(logits, rewards)).abs() / error
    assert (deviation < 4).all()
    assert (error < 0.01).all()


@pytest.mark.parametrize("wanted", [0, 2, -1])
def test_a_reward_for_one_verdict_is_maximized_by_it(wanted):
    logits = torch.zeros(4, requires_grad=True)
    rewards = torch.zeros(5)
    rewards[wanted] = 1
    optimizer = torch.optim.Adam([logits], lr=0.3)
    for _ in range(200):
        optimizer.zero_grad()
        (-policy.expected_reward(policy.verdict_log_probs(logits), rewards)).backward()
        optimizer.step()
    assert policy.verdict_log_probs(logits).exp()[wanted] > 0.99


def test_padding_changes_nothing_and_gets_no_gradient():
    short, padded = logits_of(3), torch.tensor([[0.0] * 6], dtype=torch.float64)
    padded[0, :3], padded[0, 3:] = short.detach(), 17.0
    padded.requires_grad_()
    mask = torch.arange(6)[None] < 3
    log_probs = policy.verdict_log_probs(padded, mask)[0]
    alone = policy.verdict_log_probs(short)
    torch.testing.assert_close(log_probs[[0, 1, 2, 6]], alone)
    assert log_probs[3:6].isneginf().all()
    rewards = torch.zeros(7, dtype=torch.float64)
    rewards[[0, 1, 2, 6]] = rewards_of(3, 1)
    objective = policy.expected_reward(log_probs, rewards) + policy.entropy(log_probs)
    objective = objective - policy.kl_divergence(log_probs, log_probs.detach())
    slope = gradient(objective, padded)[0]
    assert (slope[3:] == 0).all()
    wanted = policy.expected_reward(alone, rewards_of(3, 1)) + policy.entropy(alone)
    torch.testing.assert_close(slope[:3], gradient(wanted, short))


def test_entropy_and_divergence_of_known_distributions():
    uniform = torch.full((4,), 0.25).log()
    certain = torch.tensor([1.0, 0, 0, 0]).log()
    assert policy.entropy(uniform).item() == pytest.approx(torch.tensor(4.0).log().item())
    assert policy.entropy(certain).item() == 0
    assert policy.kl_divergence(uniform, uniform).item() == 0
    assert policy.kl_divergence(certain, uniform).item() == pytest.approx(torch.tensor(4.0).log().item())


ALL_SEEN = torch.ones(1, 4, dtype=torch.bool)


def test_nothing_missing_is_full_coverage():
    gaps = torch.full((1, 4), -30.0)
    assert policy.coverage(gaps, ALL_SEEN).item() == pytest.approx(4)
    assert policy.score_log_probs(gaps, ALL_SEEN).exp()[0, 4].item() == pytest.approx(1, abs=1e-4)


def test_score_probabilities_are_those_of_poisson_counts():
    # four steps and one missing step expected in all: λ = 1/4 each
    gaps = torch.full((1, 4), 0.25).expm1().log()
    assert policy.coverage(gaps, ALL_SEEN).item() == pytest.approx(16 / 5, rel=1e-5)
    probabilities = policy.score_log_probs(gaps, ALL_SEEN).exp()[0]
    # 16 / (4 + M) ≥ 3.5 only for M = 0; in [2.5, 3.5) for M = 1, 2: e^-1, e^-1 + e^-1 / 2
    assert probabilities[4].item() == pytest.approx(0.36788, abs=1e-4)
    assert probabilities[3].item() == pytest.approx(0.36788 * 1.5, abs=1e-4)
    assert probabilities.sum().item() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("level", [-20.0, 0.0, 20.0])
def test_scores_have_a_finite_gradient_even_where_no_count_reaches_one(level):
    # a single step can score 4, 2, 1 or 0, never 3
    gaps = torch.full((1, 1), level, requires_grad=True)
    log_probs = policy.score_log_probs(gaps, ALL_SEEN[:, :1])
    rewards = torch.tensor(score_rewards(1.0), dtype=torch.float32)
    assert torch.isfinite(gradient(policy.expected_reward(log_probs, rewards).sum(), gaps)).all()


def test_gaps_of_padding_count_for_nothing():
    gaps = torch.tensor([[0.3, -1.0, 9.0]])
    mask = torch.tensor([[True, True, False]])
    torch.testing.assert_close(policy.coverage(gaps, mask), policy.coverage(gaps[:, :2], mask[:, :2]))
    torch.testing.assert_close(policy.score_log_probs(gaps, mask), policy.score_log_probs(gaps[:, :2], mask[:, :2]))
