"""A trained head as a judge uses it: verdicts from step features, its thresholds, and its file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from c2faith.cros import policy
from c2faith.cros.examples import stack
from c2faith.cros.features import StepFeatures
from c2faith.cros.heads import Projection, StepHead
from c2faith.records import InputError, write_bytes


@dataclass(frozen=True)
class Reading:
    """What a head says of one chain.

    Attributes
    ----------
    hazards : ndarray, shape (n_seen,)
        P(this step is the first that does not follow | no earlier one is).
    verdicts : ndarray, shape (n_seen + 1,)
        Probabilities of the localization verdicts, the last entry of −1.
    scores : ndarray, shape (5,)
        Probabilities of the coverage scores.
    coverage : float
        4·n / (n + expected missing steps), in (0, 4].
    n_steps : int
        Steps of the chain, of which the first n_seen fitted into the context.
    """

    hazards: np.ndarray
    verdicts: np.ndarray
    scores: np.ndarray
    coverage: float
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
            hazard, gap = self.head(inputs)
            readings += readings_of(hazard, gap, mask, [chain.n_steps for chain in part])
        return readings

    def save(self, path: Path) -> None:
        """Write weights and thresholds as one safetensors file."""
        modules = {"projection": self.projection, "head": self.head}
        tensors = {
            f"{name}.{key}": t.contiguous() for name, m in modules.items() for key, t in m.state_dict().items()
        }
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
        state = {name: _under(tensors, name) for name in ("projection", "head")}
        n_states, n_components = state["projection"]["components"].shape
        projection = Projection(n_states, len(state["projection"]["scalar_scale"]), n_components)
        projection.load_state_dict({key: t.float() for key, t in state["projection"].items()})
        head = StepHead(projection.n_features, len(state["head"].get("body.0.bias", ())))
        head.load_state_dict(state["head"])
        return cls(projection, head, **thresholds)


def _under(tensors: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    return {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}


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


def best_threshold(clean: np.ndarray, faulty: np.ndarray, found: np.ndarray, *, harmonic: bool) -> float:
    """The threshold t that judges development chains best, where a value of at least t says "clean".

    Parameters
    ----------
    clean, faulty : ndarray
        The values of clean and of faulty chains (or steps), in [0, 1].
    found : ndarray of bool
        Whether a faulty one below the threshold is then judged right (its worst step is the true one).
    harmonic : bool
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
