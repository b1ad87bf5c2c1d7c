"""From token readings to one row of features a step, kept on disk under the model's and the chain's hash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import orjson
import torch
from torch import Tensor
from tqdm import tqdm

from c2faith.cros.encoder import Encoder, Layout, TokenReading, Written
from c2faith.records import replacing, sha256

POOLS = ("last", "mean", "peak")
SCALARS = (
    "surprisal_mean",
    "surprisal_max",
    "surprisal_second",
    "surprisal_first",
    "excess_mean",
    "excess_max",
    "entropy_mean",
    "number_surprisal_mean",
    "number_surprisal_max",
    "number_excess_max",
    "log_tokens",
    "log_number_tokens",
    "known_numbers",
)
VERSION = 1  # raise it with any change below: it is part of the files' names
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class StepFeatures:
    """One chain as the heads see it.

    Attributes
    ----------
    states : Tensor, shape (n_seen, layers, pools, width)
        The model's states at each step's last token, their mean, and at its most unexpected token.
    scalars : Tensor, shape (n_seen, len(SCALARS))
        Surprisal, entropy and surprisal in excess of entropy in nats, counts, and the share of the step's
        numbers that occurred before.
    n_steps : int
        Steps of the chain; those from `n_seen` on did not fit into the context.
    """

    states: Tensor
    scalars: Tensor
    n_steps: int

    @property
    def n_seen(self) -> int:
        return len(self.scalars)


def pool(reading: TokenReading, layout: Layout, chain: Written, tokens: Sequence[str]) -> StepFeatures:
    """Step features of a token reading; gradients flow through the states. `tokens` are the tokens' texts."""
    digits = torch.tensor([any(c.isdigit() for c in token) for token in tokens])
    digits = digits.to(reading.surprisal.device)
    known = set(_NUMBER.findall(chain[0]))
    states, scalars = [], []
    for i in range(layout.n_seen):
        span = slice(layout.starts[i], layout.starts[i + 1])
        inside, surprisal = reading.states[span], reading.surprisal[span]
        excess = surprisal - reading.entropy[span]
        states.append(torch.stack([inside[-1], inside.mean(0), inside[excess.argmax()]], 1))
        numbers = set(_NUMBER.findall(chain[1][i]))
        share = len(numbers & known) / len(numbers) if numbers else 1.0
        known |= numbers
        scalars.append(_scalars(surprisal, reading.entropy[span], digits[span], share))
    if not states:
        width = reading.states.shape[1:]
        empty = reading.states.new_zeros((0, width[0], len(POOLS), width[1]))
        return StepFeatures(empty, reading.surprisal.new_zeros((0, len(SCALARS))), layout.n_steps)
    return StepFeatures(torch.stack(states), torch.stack(scalars), layout.n_steps)


def _scalars(surprisal: Tensor, entropy: Tensor, digits: Tensor, known_share: float) -> Tensor:
    excess = surprisal - entropy
    top = surprisal.topk(min(2, len(surprisal))).values
    zero = surprisal.new_zeros(1)
    numbers = surprisal[digits] if digits.any() else zero
    number_excess = excess[digits] if digits.any() else zero
    counts = surprisal.new_tensor([len(surprisal), 1 + int(digits.sum())]).log()
    return torch.stack(
        [
            surprisal.mean(),
            top[0],
            top[-1],
            surprisal[0],
            excess.mean(),
            excess.max(),
            entropy.mean(),
            numbers.mean(),
            numbers.max(),
            number_excess.max(),
            *counts,
            surprisal.new_tensor(known_share),
        ]
    )


class FeatureStore:
    """Step features of chains under a frozen encoder: read once, then from disk.

    A causal model reads the beginning of a chain alike whatever follows, so that a chain which begins another one
    is not read again; `index.jsonl` says which file holds which beginnings.
    """

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        self.encoder = encoder
        self.folder = folder / sha256([VERSION, encoder.key])[:16]
        self.index: dict[str, tuple[str, int]] = {}
        path = self.folder / "index.jsonl"
        for line in path.read_bytes().splitlines() if path.exists() else ():
            with suppress(orjson.JSONDecodeError):  # a line that a killed run left unfinished
                name, *beginnings = orjson.loads(line)
                self._know(name, beginnings)

    def get(self, chains: Sequence[Written], label: str = "reading chains") -> list[StepFeatures]:
        """Features of every chain; those not on disk are read now, and each is kept as soon as it is there."""
        found = {chain: self._find(chain) for chain in chains}
        # The longest first: shorter ones may be their beginnings.
        missing = sorted((chain for chain in found if found[chain] is None), key=lambda chain: -len(chain[1]))
        needed: list[Written] = []
        begun: set[str] = set()
        for chain in missing:
            keys = _beginnings(chain)
            if keys[-1] not in begun:
                needed.append(chain)
            begun.update(keys)
        layouts = [self.encoder.layout(*chain) for chain in needed]
        readings = self.encoder.read(layouts)
        for index, reading in tqdm(readings, label, total=len(needed), disable=not needed, mininterval=2):
            self._save(needed[index], self.pool(reading, layouts[index], needed[index]))
        return [found[chain] or self._find(chain) for chain in chains]

    def pool(self, reading: TokenReading, layout: Layout, chain: Written) -> StepFeatures:
        """`pool` with this encoder's token texts, as it will be read back from disk."""
        tokens = self.encoder.tokenizer.convert_ids_to_tokens(list(layout.ids))
        features = pool(reading, layout, chain, tokens)
        return StepFeatures(features.states.half().cpu(), features.scalars.float().cpu(), features.n_steps)

    def _find(self, chain: Written) -> StepFeatures | None:
        """The chain's features if they are on disk, whole or as the beginning of another chain."""
        name, n_steps = self.index.get(_beginnings(chain)[-1], ("", 0))
        features = _load(self.folder / f"{name}.npz") if name else None
        if features is None:
            return None
        return StepFeatures(features.states[:n_steps], features.scalars[:n_steps], n_steps)

    def _save(self, chain: Written, features: StepFeatures) -> None:
        beginnings = _beginnings(chain)
        with replacing(self.folder / f"{beginnings[-1]}.npz") as file:
            np.savez(file, states=features.states.numpy(), scalars=features.scalars.numpy())
        with (self.folder / "index.jsonl").open("ab") as file:
            file.write(orjson.dumps([beginnings[-1], *beginnings]) + b"\n")
        self._know(beginnings[-1], beginnings)

    def _know(self, name: str, beginnings: Sequence[str]) -> None:
        for n_steps, key in enumerate(beginnings, 1):
            self.index.setdefault(key, (name, n_steps))


def _beginnings(chain: Written) -> list[str]:
    """A name for the chain's first step, for its first two steps, … and for the whole chain."""
    digest, names = hashlib.sha256(chain[0].encode()), []
    for step in chain[1]:
        digest.update(b"\0" + step.encode())
        names.append(digest.hexdigest()[:32])
    return names


def _load(path: Path) -> StepFeatures | None:
    """What lies there, or None if nothing whole does."""
    try:
        with np.load(path) as arrays:
            states, scalars = (torch.from_numpy(arrays[name]) for name in ("states", "scalars"))
            return StepFeatures(states, scalars, len(scalars))
    except (OSError, BadZipFile, KeyError, ValueError, EOFError):
        return None
