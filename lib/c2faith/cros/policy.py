"""From step logits to verdicts: hazards, gaps, and the exact gradient that they allow.

A chain's verdict policy is a hazard process. With hazard h_i = sigmoid(x_i), the probability that step i is the
first that does not follow given that no earlier one is, p(j) = h_j ∏_{i<j} (1 − h_i) and p(−1) = ∏ (1 − h_i).
Everything is computed in logs, so 200 confident steps neither under- nor overflow.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

SCORES = 5
FLOOR = -1e4  # log-probability of a score no count reaches: finite, so that its gradient is 0 and not NaN


def verdict_log_probs(step_logits: Tensor, mask: Tensor | None = None) -> Tensor:
    """Log-probability of every localization verdict.

    Parameters
    ----------
    step_logits : Tensor, shape (..., n_steps)
    mask : Tensor of bool, shape (..., n_steps), optional
        True where there is a step; padding has probability 0 (log −inf) and takes none from the others.

    Returns
    -------
    Tensor, shape (..., n_steps + 1)
        The last entry is the verdict −1.

    >>> verdict_log_probs(torch.zeros(2)).exp().tolist()
    [0.5, 0.25, 0.25]
    """
    flag, survive = functional.logsigmoid(step_logits), functional.logsigmoid(-step_logits)
    if mask is not None:
        survive = survive.masked_fill(~mask, 0.0)
    survived = survive.cumsum(-1)
    first = flag + survived - survive
    if mask is not None:
        first = first.masked_fill(~mask, -torch.inf)
    return torch.cat([first, survived[..., -1:]], -1)


def score_log_probs(gap_logits: Tensor, mask: Tensor) -> Tensor:
    """Log-probability of the coverage scores 0 … 4.

    The gap head says how many steps it expects to be missing before each step, λ_i = softplus(g_i), as
    independent Poisson counts; their total M is Poisson(Σ λ_i). A chain of n steps that lacks M carries
    4·n / (n + M) of the whole, the `retention` reference, and its score is that number rounded half up. So the
    score's distribution is a finite sum of Poisson probabilities: (batch, 5) of (batch, n_steps).
    """
    total = expected_missing(gap_logits, mask)[:, None]
    n_steps = mask.sum(-1, keepdim=True).clamp_min(1)
    # Scores of 4n / (n + M) < 0.5, that is M > 7n, are all 0: the sum stops there and score 0 gets the rest.
    counts = torch.arange(7 * mask.shape[-1] + 1, device=gap_logits.device)
    log_pmf = counts * total.clamp_min(1e-6).log() - total - torch.lgamma(counts + 1.0)
    # floor(x + 1/2) in whole numbers: (8n + (n + M)) // (2 (n + M))
    scores = (9 * n_steps + counts).div(2 * (n_steps + counts), rounding_mode="floor")
    chosen = scores[:, None, :] == torch.arange(1, SCORES, device=scores.device)[:, None]
    positive = torch.logsumexp(log_pmf[:, None, :].masked_fill(~chosen, FLOOR), -1).clamp(max=-1e-6)
    zero = torch.log1p(-positive.exp().sum(-1, keepdim=True).clamp(max=1 - 1e-6))
    return torch.log_softmax(torch.cat([zero, positive], -1), -1)


def expected_missing(gap_logits: Tensor, mask: Tensor) -> Tensor:
    """Expected number of missing steps Σ λ_i, shape (batch,)."""
    return (functional.softplus(gap_logits) * mask).sum(-1)


def coverage(gap_logits: Tensor, mask: Tensor) -> Tensor:
    """Coverage on the 0–4 scale before rounding, 4·n / (n + Σ λ_i), shape (batch,)."""
    n_steps = mask.sum(-1).clamp_min(1)
    return 4 * n_steps / (n_steps + expected_missing(gap_logits, mask))


def expected_reward(log_probs: Tensor, rewards: Tensor) -> Tensor:
    """Σ_v p(v) r(v), the objective whose autograd gradient is the exact policy gradient; shape (batch,)."""
    return (log_probs.exp() * rewards).sum(-1)


def entropy(log_probs: Tensor) -> Tensor:
    """−Σ p log p in nats over the last axis; verdicts of probability 0 add nothing."""
    return -(log_probs.exp() * log_probs.masked_fill(log_probs.isneginf(), 0.0)).sum(-1)


def kl_divergence(log_probs: Tensor, anchor: Tensor) -> Tensor:
    """KL(p ‖ anchor) in nats over the last axis, both given as log-probabilities over the same verdicts."""
    gap = (log_probs - anchor).masked_fill(log_probs.isneginf(), 0.0)
    return (log_probs.exp() * gap).sum(-1)


def sampled_objective(
    log_probs: Tensor, rewards: Tensor, n_samples: int, generator: torch.Generator, *, scale: bool = True
) -> Tensor:
    """GRPO's surrogate on the same policy: sampled verdicts, their advantages taken within the group.

    Its gradient is that of one on-policy step of a trainer of sampled replies (nothing is clipped there): the
    mean over the group of A_k ∇ log p(v_k), with A_k = r_k − mean(r). With `scale`, as GRPO has it, A_k is
    divided by the group's standard deviation, which is no longer an unbiased estimate: groups in which all
    verdicts earn nearly the same count as much as those where the choice matters. Without it the expected
    gradient is (1 − 1 / n_samples) times the exact one. Shape (batch,) of (batch, n_verdicts).
    """
    if not len(log_probs):
        return log_probs.sum(-1)
    draws = torch.multinomial(log_probs.detach().exp(), n_samples, replacement=True, generator=generator)
    earned = rewards.gather(-1, draws)
    advantages = earned - earned.mean(-1, keepdim=True)
    if scale:
        advantages = advantages / (earned.std(-1, keepdim=True, correction=0) + 1e-4)
    return (advantages * log_probs.gather(-1, draws)).mean(-1)
