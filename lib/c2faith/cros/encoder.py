"""What the judge reads a chain with: any causal language model of transformers, token by token, once.

`read` runs a frozen model over many chains. Chains that begin alike (a clean chain, its perturbed twins, its
shortened forms) are read in the order of their tokens, so that a shared beginning is read once and kept in the
attention cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from c2faith.judging.judges import local_model, smollm2
from c2faith.records import InputError, sha256

Written = tuple[str, tuple[str, ...]]  # a question and the steps of a solution


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
    """What a model made of a chain's tokens.

    Attributes
    ----------
    states : Tensor, shape (tokens, layers, width)
    surprisal, entropy : Tensor, shape (tokens,)
        −log p of each token, and the entropy of the distribution it came from, in nats; 0 for the first token,
        which nothing predicts.
    """

    states: Tensor
    surprisal: Tensor
    entropy: Tensor


class Encoder:
    """A causal language model that reads chains.

    Parameters
    ----------
    model : str
        ``smollm2-135m``, a folder or a hub id.
    layers : sequence of float
        Depths in (0, 1] whose states are kept: 1/2 is the middle layer, 1 the last.
    max_tokens : int
        Context; the model's own limit holds where it is lower.
    adapter : str, optional
        Folder of a LoRA adapter to read with.

    Raises
    ------
    InputError
        If the model cannot be loaded, or its tokenizer knows tokens that the model does not.
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
        self.model = model
        self.network, self.tokenizer = _load(model, dtype)
        if adapter:
            from peft import PeftModel

            self.network = PeftModel.from_pretrained(self.network, adapter)
        self.network.to(device).eval()
        config = self.network.config.get_text_config()
        self.layers = tuple(max(1, round(share * config.num_hidden_layers)) for share in layers)
        self.width = config.hidden_size
        self.max_tokens = min(max_tokens, getattr(config, "max_position_embeddings", None) or max_tokens)
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

    def forward(self, layouts: Sequence[Layout]) -> list[TokenReading]:
        """Read a batch at once; with gradients where they are enabled.

        Rows are padded on the right, which a causal model never looks at, so that no mask is needed.
        """
        device = self.network.device
        ids = torch.zeros(len(layouts), max(len(layout.ids) for layout in layouts), dtype=torch.long)
        for row, layout in zip(ids, layouts, strict=True):
            row[: len(layout.ids)] = torch.tensor(layout.ids)
        output = self.network(ids.to(device), use_cache=False, output_hidden_states=True)
        hidden = torch.stack([output.hidden_states[layer] for layer in self.layers], 2)
        readings = []
        for row, layout in enumerate(layouts):
            size = len(layout.ids)
            surprisal, entropy = _predictions(output.logits[row, : size - 1], ids[row, 1:size].to(device))
            zero = surprisal.new_zeros(1)
            readings.append(
                TokenReading(hidden[row, :size], torch.cat([zero, surprisal]), torch.cat([zero, entropy]))
            )
        return readings

    def read(self, layouts: Sequence[Layout]) -> Iterator[tuple[int, TokenReading]]:
        """(index, reading) of every chain, one by one, in the order in which shared beginnings save most."""
        past = SharedPast(self)
        for index in sorted(range(len(layouts)), key=lambda i: layouts[i].ids):
            yield index, past.read(layouts[index].ids)


def identity(model: str) -> str:
    """A name for the model's content, wherever it lies."""
    return local_model.identity(str(smollm2.folder()) if model == smollm2.NAME else model)


def _load(model: str, dtype: str) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = str(smollm2.folder()) if model == smollm2.NAME else model
    try:
        tokenizer = AutoTokenizer.from_pretrained(source)
        network = AutoModelForCausalLM.from_pretrained(source, dtype=getattr(torch, dtype))
    except (OSError, ValueError, KeyError, AttributeError) as error:
        reason = str(error).strip().split("\n")[0]
        raise InputError(f"MODEL={model}: cannot be loaded as a causal language model ({reason})") from error
    rows = network.get_input_embeddings().num_embeddings
    if len(tokenizer) > rows:
        raise InputError(
            f"MODEL={model}: its tokenizer has {len(tokenizer)} tokens, the model only {rows}; "
            "use the tokenizer it was trained with, or resize the model's embeddings"
        )
    return network, tokenizer


@torch.no_grad()
def _predictions(logits: Tensor, following: Tensor) -> tuple[Tensor, Tensor]:
    """Surprisal of the tokens that followed, and the entropy of what was expected instead, in nats."""
    log_probs = logits.float().log_softmax(-1)
    surprisal = -log_probs.gather(-1, following[:, None])[:, 0]
    return surprisal, -(log_probs.exp() * log_probs).sum(-1)


class SharedPast:
    """The chain read last, and what the next one may share with it."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.ids: tuple[int, ...] = ()
        self.cache: Any = None
        self.reading: TokenReading | None = None

    @torch.inference_mode()
    def read(self, ids: tuple[int, ...]) -> TokenReading:
        kept = self._keep(ids)
        fresh = torch.tensor([ids[kept:]], device=self.encoder.network.device)
        output = self.encoder.network(fresh, cache=self.cache, use_cache=True, output_hidden_states=True)
        states = torch.stack([output.hidden_states[layer][0] for layer in self.encoder.layers], 1)
        surprisal, entropy = _predictions(output.logits[0, :-1], fresh[0, 1:])
        zero = surprisal.new_zeros(1)
        # The token at `kept` is read again for what it predicts; what predicted it is known from before.
        old = self.reading if kept else TokenReading(states[:0], zero, zero)
        self.reading = TokenReading(
            torch.cat([old.states[:kept], states]),
            torch.cat([old.surprisal[: kept + 1], surprisal]),
            torch.cat([old.entropy[: kept + 1], entropy]),
        )
        self.ids, self.cache = ids, output.cache
        return self.reading

    def _keep(self, ids: tuple[int, ...]) -> int:
        """Crop the cache to the shared beginning but for its last token; how many tokens are left in it."""
        common = next((i for i, pair in enumerate(zip(self.ids, ids, strict=False)) if pair[0] != pair[1]), None)
        kept = (min(len(self.ids), len(ids)) if common is None else common) - 1
        if kept < 1 or not self.cache.is_croppable:
            self.cache = None
            return 0
        self.cache.crop(kept - len(self.ids))
        return kept
