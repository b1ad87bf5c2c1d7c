"""Training the encoder with the head: LoRA or the whole model, for machines with an accelerator.

The head begins as it was trained on the frozen model, and the adapter as nothing, so that tuning goes on from the
frozen judge. One process a GPU under ``accelerate launch``; each takes its share of every batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from c2faith.cros.encoder import Encoder
from c2faith.cros.examples import Batch, Example, batch_of, stack, usable
from c2faith.cros.experiment import with_thresholds
from c2faith.cros.features import pool
from c2faith.cros.train import Recipe, Run, progress, train
from c2faith.cros.trained import TrainedHead, readings_of
from c2faith.records import InputError

Mode = Literal["lora", "full"]


class ReadingHead(nn.Module):
    """An encoder and a head as one module: called with examples, or a batch of them, it gives their logits."""

    def __init__(self, encoder: Encoder, trained: TrainedHead) -> None:
        super().__init__()
        self.encoder = encoder
        self.network, self.projection, self.head = encoder.network, trained.projection, trained.head

    def forward(self, asked: Batch | Sequence[Example]) -> tuple[Tensor, Tensor]:
        examples = asked.inputs if isinstance(asked, Batch) else asked
        layouts = [self.encoder.layout(*example.written) for example in examples]
        chains = []
        for example, layout, reading in zip(examples, layouts, self.encoder.forward(layouts), strict=True):
            tokens = self.encoder.tokenizer.convert_ids_to_tokens(list(layout.ids))
            chains.append(self.projection(pool(reading, layout, example.written, tokens)))
        return self.head(stack(chains)[0])


def tune(
    encoder: Encoder,
    trained: TrainedHead,
    training: Sequence[Example],
    development: Sequence[Example],
    *,
    recipe: Recipe,
    folder: Path,
    mode: Mode = "lora",
    rank: int = 16,
    accelerator: Any = None,
) -> tuple[TrainedHead, Run]:
    """Train encoder and head together and leave both at their best.

    Parameters
    ----------
    encoder : Encoder
        Changed in place; with ``lora`` its network gets an adapter, which is saved to ``folder/adapter``, with
        ``full`` the whole model is saved to ``folder/model``.
    trained : TrainedHead
        What was trained on the frozen encoder.
    recipe : Recipe
        `batch_size` chains are read at once.
    folder : Path
        Also keeps the checkpoint from which an interrupted run goes on.

    Returns
    -------
    judge : TrainedHead
        With thresholds chosen anew.
    run : Run
    """
    if mode == "lora":
        from peft import LoraConfig, get_peft_model

        with torch.random.fork_rng():
            torch.manual_seed(recipe.seed)
            settings = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
            encoder.network = get_peft_model(encoder.network, settings)
    elif mode != "full":
        raise InputError(f"TUNE={mode}: choose frozen, lora or full")
    module = ReadingHead(encoder, trained)
    fitting, held = _seen(encoder, training), _seen(encoder, development)
    whole, held_whole = (batch_of(part, _nothing(encoder, part)) for part in (fitting, held))

    def batch(indices: Sequence[int]) -> Batch:
        device = encoder.network.device
        return replace(whole.select(indices), inputs=[fitting[i] for i in indices]).to(device)

    def evaluate(tuned: ReadingHead) -> dict[str, float]:
        hazard, gap, _ = _logits(tuned, held, recipe.batch_size)
        return progress((hazard, gap), held_whole)

    run = train(
        module,
        batch,
        len(fitting),
        recipe,
        evaluate,
        evaluate_every=max(1, recipe.updates // 10),
        checkpoint=folder / "checkpoint.pt",
        accelerator=accelerator,
        label=f"tuning ({mode})",
    )
    if accelerator is None or accelerator.is_main_process:
        encoder.network.save_pretrained(folder / ("adapter" if mode == "lora" else "model"))
        if mode == "full":
            encoder.tokenizer.save_pretrained(folder / "model")
    readings = readings_of(*_logits(module, held, recipe.batch_size), [len(e.steps) for e in held])
    return with_thresholds(TrainedHead(trained.projection.cpu(), trained.head.cpu()), held, readings), run


def _seen(encoder: Encoder, examples: Sequence[Example]) -> list[Example]:
    return [e for e in examples if usable(e, encoder.layout(*e.written).n_seen)]


def _nothing(encoder: Encoder, examples: Sequence[Example]) -> list[Tensor]:
    """In the place of cached features: of each example's seen steps, none."""
    return [torch.zeros(encoder.layout(*e.written).n_seen, 0) for e in examples]


@torch.no_grad()
def _logits(module: ReadingHead, examples: Sequence[Example], size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Hazard and gap logits and the mask of all examples, read `size` at a time."""
    module.eval()
    seen = torch.tensor([module.encoder.layout(*e.written).n_seen for e in examples])
    mask = torch.arange(int(seen.max()))[None] < seen[:, None]
    hazard, gap = torch.zeros(mask.shape), torch.zeros(mask.shape)
    for start in range(0, len(examples), size):
        rows = slice(start, start + size)
        for whole, part in zip((hazard, gap), module(examples[rows]), strict=True):
            whole[rows, : part.shape[1]] = part.float().cpu()
    return hazard, gap, mask
