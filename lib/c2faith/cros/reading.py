"""What a causal language model makes of a chain: an `Encoder` reads its tokens, `pool` makes a row of features of
each step, and a `FeatureStore` keeps these on disk under the model's and the chain's hash.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import orjson
import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm

from c2faith.judging.judges import local_model
from c2faith.records import InputError, replacing, sha256

Written = tuple[str, tuple[str, ...]]  # a question and the steps of a solution
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
VERSION = 1  # raise it with any change here: it is part of the files' names
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Layout:
    """A chain as tokens: step i is ``ids[starts[i]:starts[i + 1]]``; `n_seen` steps fit into the context."""

    ids: tuple[int, ...]
    starts: tuple[int, ...]
    n_steps: int

    @property
    def n_seen(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True)
class TokenReading:
    """What a model made of a chain's tokens."""

    states: Tensor  # (tokens, layers, width)
    surprisal: Tensor  # (tokens,): −log p of each token, in nats; 0 for the first one, which nothing predicts
    entropy: Tensor  # (tokens,): of the distribution that the token came from, in nats; 0 for the first one


class Encoder:
    """A causal language model that reads chains.

    `layers` are depths in (0, 1] whose states are kept (1/2 is the middle layer, 1 the last), `max_tokens` is the
    context unless the model's own limit is lower, `adapter` the folder of a LoRA adapter to read with.
    """

    def __init__(
        self,
        model: str,
        *,
        layers: Sequence[float] = (0.5, 0.75, 1.0),
        max_tokens: int = 2048,
        device: str = "cpu",
        dtype: str = "float32",
        adapter: str | None = None,
    ) -> None:
        loaded = local_model.load(model, dtype=dtype, device=device, adapter=adapter)
        self.model, self.network, self.tokenizer = model, loaded.model, loaded.tokenizer
        rows = self.network.get_input_embeddings().num_embeddings
        if len(self.tokenizer) > rows:
            raise InputError(
                f"MODEL={model}: its tokenizer has {len(self.tokenizer)} tokens, the model only {rows}; "
                "use the tokenizer it was trained with, or resize the model's embeddings"
            )
        depth = self.network.config.get_text_config().num_hidden_layers
        self.layers = tuple(max(1, round(share * depth)) for share in layers)
        self.max_tokens = min(max_tokens, loaded.context)
        self.settings = {"model": model, "layers": list(layers), "max_tokens": max_tokens, "dtype": dtype}
        adapted = local_model.content_hash(Path(adapter)) if adapter else None
        self.key = sha256([identity(model), self.layers, self.max_tokens, dtype, adapted])

    def layout(self, question: str, steps: Sequence[str]) -> Layout:
        """Tokens of a problem and its steps, each closed by a blank line; whole steps only.

        Question and steps are tokenized apart, so that a step's tokens do not depend on its neighbours and
        chains that share steps share tokens. A step that does not fit whole ends the chain: `n_seen` <
        `n_steps`, and 0 if not even the first one fits.
        """
        ids = self._encode(question)
        if (bos := self.tokenizer.bos_token_id) is not None:
            ids.insert(0, bos)
        starts = [len(ids)]
        for step in steps:
            piece = self._encode(step)
            if len(ids) + len(piece) > self.max_tokens:
                break
            ids += piece
            starts.append(len(ids))
        return Layout(tuple(ids[: self.max_tokens]), tuple(starts), len(steps))

    def _encode(self, text: str) -> list[int]:
        ids = self.tokenizer(f"{text}\n\n", add_special_tokens=False)["input_ids"]
        if not ids:
            raise InputError(
                f"MODEL={self.model}: its tokenizer makes no token of {text[:40]!r}; choose another model"
            )
        return list(ids)

    def tokens(self, layout: Layout) -> list[str]:
        """The tokens' texts, as `pool` needs them."""
        return self.tokenizer.convert_ids_to_tokens(list(layout.ids))

    def forward(self, layouts: Sequence[Layout]) -> list[TokenReading]:
        """Read a batch at once; with gradients where they are enabled.

        Rows are padded on the right, which a causal model never looks at, so that no mask is needed.
        """
        ids = pad_sequence([torch.tensor(layout.ids) for layout in layouts], batch_first=True)
        ids = ids.to(self.network.device)
        output = self.network(ids, use_cache=False, output_hidden_states=True)
        hidden = torch.stack([output.hidden_states[layer] for layer in self.layers], 2)
        readings = []
        for row, layout in enumerate(layouts):
            size = len(layout.ids)
            surprisal, entropy = _predictions(output.logits[row, : size - 1], ids[row, 1:size])
            readings.append(TokenReading(hidden[row, :size], pad(surprisal, (1, 0)), pad(entropy, (1, 0))))
        return readings

    @torch.inference_mode()
    def read(self, layouts: Sequence[Layout]) -> Iterator[tuple[int, TokenReading]]:
        """(index, reading) of every chain, one by one, in the order of their tokens.

        So what neighbours have in common (a clean chain, its perturbed twins, its shortened forms) is read once.
        """
        past, cache, reading = (), None, None
        for index in sorted(range(len(layouts)), key=lambda i: layouts[i].ids):
            ids = layouts[index].ids
            # The last shared token is read again for what it predicts; what predicted it is known from before.
            kept = local_model.shared_length(past, ids) - 1
            if kept < 1 or not cache.is_croppable:
                kept, cache = 0, None
            else:
                cache.crop(kept - len(past))
            fresh = torch.tensor([ids[kept:]], device=self.network.device)
            output = self.network(fresh, cache=cache, use_cache=True, output_hidden_states=True)
            states = torch.stack([output.hidden_states[layer][0] for layer in self.layers], 1)
            surprisal, entropy = _predictions(output.logits[0, :-1], fresh[0, 1:])
            zero = surprisal.new_zeros(1)
            old = reading if kept else TokenReading(states[:0], zero, zero)
            reading = TokenReading(
                torch.cat([old.states[:kept], states]),
                torch.cat([old.surprisal[: kept + 1], surprisal]),
                torch.cat([old.entropy[: kept + 1], entropy]),
            )
            past, cache = ids, output.cache
            yield index, reading


def identity(model: str) -> str:
    """A name for the model's content, wherever it lies."""
    return local_model.identity(local_model.source(model))


@torch.no_grad()
def _predictions(logits: Tensor, following: Tensor) -> tuple[Tensor, Tensor]:
    """Surprisal of the tokens that followed, and the entropy of what was expected instead, in nats."""
    log_probs = logits.float().log_softmax(-1)
    surprisal = -log_probs.gather(-1, following[:, None])[:, 0]
    return surprisal, -(log_probs.exp() * log_probs).sum(-1)


@dataclass(frozen=True)
class StepFeatures:
    """One chain as the heads see it; steps from `n_seen` on did not fit into the context."""

    states: Tensor  # (n_seen, layers, 3, width): at a step's last token, their mean, at its most unexpected token
    scalars: Tensor  # (n_seen, len(SCALARS)): in nats, log counts, and the share of numbers that occurred before
    n_steps: int

    @property
    def n_seen(self) -> int:
        return len(self.scalars)


def pool(reading: TokenReading, layout: Layout, chain: Written, tokens: Sequence[str]) -> StepFeatures:
    """Step features of a token reading; gradients flow through the states. `tokens` are the tokens' texts."""
    device = reading.surprisal.device
    digits = torch.tensor([any(map(str.isdigit, token)) for token in tokens], device=device)
    known = set(_NUMBER.findall(chain[0]))
    _, n_layers, width = reading.states.shape
    states = [reading.states.new_zeros(0, n_layers, 3, width)]
    scalars = [reading.surprisal.new_zeros(0, len(SCALARS))]
    for text, start, stop in zip(chain[1], layout.starts, layout.starts[1:], strict=False):
        inside = reading.states[start:stop]
        surprisal, entropy = reading.surprisal[start:stop], reading.entropy[start:stop]
        strangest = (surprisal - entropy).argmax()
        states.append(torch.stack([inside[-1], inside.mean(0), inside[strangest]], 1)[None])
        numbers = set(_NUMBER.findall(text))
        share = len(numbers & known) / len(numbers) if numbers else 1.0
        known |= numbers
        scalars.append(_scalars(surprisal, entropy, digits[start:stop], share)[None])
    return StepFeatures(torch.cat(states), torch.cat(scalars), layout.n_steps)


def _scalars(surprisal: Tensor, entropy: Tensor, digits: Tensor, known_share: float) -> Tensor:
    excess = surprisal - entropy
    top = surprisal.topk(min(2, len(surprisal))).values
    of_all = [surprisal.mean(), top[0], top[-1], surprisal[0], excess.mean(), excess.max(), entropy.mean()]
    numbers, strange = (part[digits] if digits.any() else part.new_zeros(1) for part in (surprisal, excess))
    of_numbers = [numbers.mean(), numbers.max(), strange.max()]
    counts = surprisal.new_tensor([len(surprisal), 1 + int(digits.sum())]).log()
    return torch.stack([*of_all, *of_numbers, *counts, surprisal.new_tensor(known_share)])


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
                self._know(*orjson.loads(line))

    def get(self, chains: Sequence[Written], label: str = "reading chains") -> list[StepFeatures]:
        """Features of every chain; those not on disk are read now, and each is kept as soon as it is there."""
        found = {chain: self._find(chain) for chain in chains}
        # The longest first: shorter ones may be their beginnings.
        missing = sorted((chain for chain in found if found[chain] is None), key=lambda chain: -len(chain[1]))
        needed: dict[Written, Layout] = {}
        begun: set[str] = set()
        for chain in missing:
            keys = _beginnings(chain)
            if keys[-1] not in begun:
                needed[chain] = self.encoder.layout(*chain)
            begun.update(keys)
        asked, readings = list(needed.items()), self.encoder.read(list(needed.values()))
        for index, reading in tqdm(readings, label, total=len(needed), disable=not needed, mininterval=2):
            chain, layout = asked[index]
            self._save(chain, pool(reading, layout, chain, self.encoder.tokens(layout)))
        return [found[chain] or self._find(chain) for chain in chains]

    def _find(self, chain: Written) -> StepFeatures | None:
        """The chain's features if they are whole on disk, as its own or as the beginning of another chain's."""
        name, n_steps = self.index.get(_beginnings(chain)[-1], ("", 0))
        try:
            with np.load(self.folder / f"{name}.npz") as arrays:
                states, scalars = (torch.from_numpy(arrays[key])[:n_steps] for key in ("states", "scalars"))
                return StepFeatures(states, scalars, n_steps)
        except (OSError, BadZipFile, KeyError, ValueError, EOFError):
            return None

    def _save(self, chain: Written, features: StepFeatures) -> None:
        beginnings = _beginnings(chain)
        with replacing(self.folder / f"{beginnings[-1]}.npz") as file:
            states, scalars = features.states.half().cpu(), features.scalars.float().cpu()
            np.savez(file, states=states.numpy(), scalars=scalars.numpy())
        with (self.folder / "index.jsonl").open("ab") as file:
            file.write(orjson.dumps([beginnings[-1], *beginnings]) + b"\n")
        self._know(beginnings[-1], *beginnings)

    def _know(self, name: str, *beginnings: str) -> None:
        for n_steps, key in enumerate(beginnings, 1):
            self.index.setdefault(key, (name, n_steps))


def _beginnings(chain: Written) -> list[str]:
    """A name for the chain's first step, for its first two steps, … and for the whole chain."""
    digest, names = hashlib.sha256(chain[0].encode()), []
    for step in chain[1]:
        digest.update(b"\0" + step.encode())
        names.append(digest.hexdigest()[:32])
    return names
