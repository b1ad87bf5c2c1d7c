"""The trainable part over a model's step features: a projection fitted once, and a small head over the steps."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from c2faith.cros.features import StepFeatures


class Projection(nn.Module):
    """Standardized scalars beside the leading principal components of the standardized states.

    Each step is described by these numbers and by how they differ from their mean over the steps before it.
    Fitted without labels, on the training problems' steps, and fixed from then on.
    """

    def __init__(self, n_states: int, n_scalars: int, n_components: int) -> None:
        super().__init__()
        self.register_buffer("state_center", torch.zeros(n_states))
        self.register_buffer("components", torch.zeros(n_states, n_components))
        self.register_buffer("scalar_center", torch.zeros(n_scalars))
        self.register_buffer("scalar_scale", torch.ones(n_scalars))

    @property
    def n_features(self) -> int:
        return 2 * (self.components.shape[1] + len(self.scalar_scale))

    @classmethod
    def fit(cls, chains: Sequence[StepFeatures], n_components: int, seed: int = 0) -> Projection:
        """Fit to the steps of `chains`; components keep their relative variances, which are 1 on average.

        Scaled to the same variance instead, the many faint components, mostly noise, would weigh as much as the
        few strong ones.
        """
        states = torch.cat([chain.states.flatten(1) for chain in chains]).float()
        scalars = torch.cat([chain.scalars for chain in chains])
        n_components = min(n_components, len(states) - 1, states.shape[1])
        fitted = cls(states.shape[1], scalars.shape[1], n_components)
        center, scale = states.mean(0), states.std(0).clamp_min(1e-4)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            _, singular, axes = torch.svd_lowrank((states - center) / scale, q=n_components, niter=4)
        deviation = singular.square().mean().sqrt() / len(states) ** 0.5
        fitted.state_center.copy_(center)
        components = axes / scale[:, None] / deviation.clamp_min(1e-6)
        fitted.components.copy_(components.half())  # so that nothing changes when it is written in half precision
        fitted.scalar_center.copy_(scalars.mean(0))
        fitted.scalar_scale.copy_(scalars.std(0).clamp_min(1e-4))
        return fitted

    def forward(self, chain: StepFeatures) -> Tensor:
        """Features of a chain's steps, shape (n_seen, n_features)."""
        states = (chain.states.flatten(1).to(self.components.dtype) - self.state_center) @ self.components
        scalars = (chain.scalars - self.scalar_center) / self.scalar_scale
        steps = torch.cat([states, scalars.clamp(-5, 5)], -1).clamp(-10, 10)
        count = torch.arange(len(steps), device=steps.device).clamp_min(1)[:, None]
        before = (steps.cumsum(0) - steps) / count
        return torch.cat([steps, steps - before], -1)


class StepHead(nn.Module):
    """Hazard and gap logits of every step, one function shared by all positions.

    What follows a step does not enter, as it does not enter the language model's reading, so that a step's hazard
    is the same whether the chain goes on or not. There is no positional input: the head cannot learn where errors
    tend to be put.

    Parameters
    ----------
    n_features : int
    hidden : int
        Width of the hidden layer; 0 makes the logits linear.
    dropout : float
        On what the logits are linear in, in training.
    """

    def __init__(self, n_features: int, hidden: int = 0, dropout: float = 0.2) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_features, hidden), nn.GELU()) if hidden else nn.Identity()
        self.dropout = nn.Dropout(dropout)
        self.outputs = nn.Linear(hidden or n_features, 2)
        if not hidden:
            nn.init.zeros_(self.outputs.weight)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Hazard and gap logits, each of shape (batch, n_steps), of features (batch, n_steps, n_features)."""
        hazard, gap = self.outputs(self.dropout(self.body(features))).unbind(-1)
        return hazard, gap
