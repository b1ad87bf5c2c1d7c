"""The trainable part over a model's step features: a projection, a head on it, and the verdicts read from both."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from c2faith.cros import policy
from c2faith.cros.examples import stack
from c2faith.cros.reading import StepFeatures
from c2faith.records import InputError, write_bytes


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
    tend to be put. `hidden` is the width of the hidden layer, 0 for linear logits.
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


@dataclass(frozen=True)
class Reading:
    """What a head says of one chain, of whose `n_steps` the first n_seen fitted into the context."""

    hazards: np.ndarray  # (n_seen,): P(this step is the first that does not follow | no earlier one is)
    verdicts: np.ndarray  # (n_seen + 1,): probabilities of the localization verdicts, the last entry of −1
    scores: np.ndarray  # (5,): probabilities of the coverage scores
    coverage: float  # 4·n / (n + expected missing steps), in (0, 4]
    n_steps: int

    @property
    def whole(self) -> bool:
        return len(self.hazards) == self.n_steps

    def localization(self, threshold: float) -> int | None:
        """−1 if P(−1) reaches the threshold, else the most probable step.

        None where −1 would call steps clean that were not seen.
        """
        if self.verdicts[-1] < threshold:
            return int(self.verdicts[:-1].argmax())
        return -1 if self.whole else None

    def score(self) -> int | None:
        """The median coverage score, which no other beats in expected distance; None if a step was not seen."""
        return int((self.scores.cumsum() >= 0.5).argmax()) if self.whole else None


def readings_of(hazard: Tensor, gap: Tensor, mask: Tensor, n_steps: Sequence[int]) -> list[Reading]:
    """The readings behind a batch of logits."""
    verdicts = policy.verdict_log_probs(hazard, mask).double().exp().numpy()
    scores = policy.score_log_probs(gap, mask).double().exp().numpy()
    covered, hazards = policy.coverage(gap, mask).numpy(), hazard.sigmoid().numpy()
    readings = []
    for row, seen in enumerate(mask.sum(-1).tolist()):
        probabilities = np.append(verdicts[row, :seen], verdicts[row, -1])
        readings.append(Reading(hazards[row, :seen], probabilities, scores[row], float(covered[row]), n_steps[row]))
    return readings


@dataclass
class TrainedHead:
    """A projection, a head on it, and the thresholds chosen on development problems.

    `clean_threshold` is the P(−1) from which a chain is called clean, `step_threshold` the hazard from which a
    single step is said not to follow.
    """

    projection: Projection
    head: StepHead
    clean_threshold: float = 0.5
    step_threshold: float = 0.5

    @torch.no_grad()
    def read(self, chains: Sequence[StepFeatures]) -> list[Reading]:
        """Read chains from their features, in order."""
        self.head.eval()
        readings = []
        for start in range(0, len(chains), 256):
            part = chains[start : start + 256]
            inputs, mask = stack([self.projection(chain) for chain in part])
            readings += readings_of(*self.head(inputs), mask, [chain.n_steps for chain in part])
        return readings

    def _weights(self) -> nn.ModuleDict:
        return nn.ModuleDict({"projection": self.projection, "head": self.head})

    def save(self, path: Path) -> None:
        """Write weights and thresholds as one safetensors file."""
        tensors = {name: tensor.contiguous() for name, tensor in self._weights().state_dict().items()}
        tensors["projection.components"] = tensors["projection.components"].half()
        thresholds = {"clean_threshold": self.clean_threshold, "step_threshold": self.step_threshold}
        write_bytes(path, save(tensors, metadata={"thresholds": json.dumps(thresholds)}))

    @classmethod
    def load(cls, path: Path) -> TrainedHead:
        """What `save` wrote."""
        try:
            with safe_open(path, framework="pt") as file:
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a mapping
                thresholds = json.loads(file.metadata()["thresholds"])
        except (OSError, SafetensorError, KeyError, TypeError) as error:
            raise InputError(f"{path}: no trained head ({error}); train one with make cros") from error
        n_states, n_components = tensors["projection.components"].shape
        projection = Projection(n_states, len(tensors["projection.scalar_scale"]), n_components)
        head = StepHead(projection.n_features, len(tensors.get("head.body.0.bias", ())))
        trained = cls(projection, head, **thresholds)
        trained._weights().load_state_dict(tensors)
        return trained


def best_threshold(clean: np.ndarray, faulty: np.ndarray, found: np.ndarray, *, harmonic: bool) -> float:
    """The threshold t that judges development chains best, where a value of at least t says "clean".

    Parameters
    ----------
    clean, faulty
        The values of clean and of faulty chains (or steps), in [0, 1].
    found
        Whether a faulty one below the threshold is then judged right (its worst step is the true one).
    harmonic
        Maximize the harmonic mean of both accuracies, which is ProcessBench's F1; else their mean.

    >>> best_threshold(np.array([0.6, 0.9]), np.array([0.1, 0.4]), np.array([True, True]), harmonic=True)
    0.5
    """
    values = np.unique(np.concatenate([clean, faulty]))
    edges = np.concatenate([[0.0], (values[1:] + values[:-1]) / 2, [1.0 + 1e-9]])
    accepted = (clean[None] >= edges[:, None]).mean(1)
    caught = ((faulty[None] < edges[:, None]) & found[None]).mean(1)
    total = accepted + caught
    gain = 2 * accepted * caught / np.where(total > 0, total, 1) if harmonic else total / 2
    return float(edges[gain.argmax()])
