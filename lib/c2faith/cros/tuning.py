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

from c2faith.cros.examples import Batch, Example, batch_of, stack, usable
from c2faith.cros.experiment import with_thresholds
from c2faith.cros.heads import TrainedHead, readings_of
from c2faith.cros.reading import Encoder, pool
from c2faith.cros.train import Recipe, Run, progress, train
from c2faith.judging.judges import local_model
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
            features = pool(reading, layout, example.written, self.encoder.tokens(layout))
            chains.append(self.projection(features))
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
    """Train encoder and head together and leave both at their best, with thresholds chosen anew.

    The encoder is changed in place: with ``lora`` its network gets an adapter, which is saved to
    ``folder/adapter``, with ``full`` the whole model is saved to ``folder/model``. An interrupted run goes on from
    the checkpoint in `folder`. `trained` is what was trained on the frozen encoder.
    """
    if mode == "lora":
        from peft import get_peft_model

        with torch.random.fork_rng():
            torch.manual_seed(recipe.seed)
            encoder.network = get_peft_model(encoder.network, local_model.lora(rank))
    elif mode != "full":
        raise InputError(f"TUNE={mode}: choose frozen, lora or full")
    module = ReadingHead(encoder, trained)
    fitting, seen = _seen(encoder, training)
    held, held_seen = _seen(encoder, development)
    whole, held_whole = batch_of(fitting, seen), batch_of(held, held_seen)

    def batch(indices: Sequence[int]) -> Batch:
        device = encoder.network.device
        return replace(whole.select(indices), inputs=[fitting[i] for i in indices]).to(device)

    def evaluate(tuned: ReadingHead) -> dict[str, float]:
        return progress(_logits(tuned, held, held_whole.mask, recipe.batch_size), held_whole)

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
    logits = _logits(module, held, held_whole.mask, recipe.batch_size)
    readings = readings_of(*logits, held_whole.mask, [len(e.steps) for e in held])
    return with_thresholds(TrainedHead(trained.projection.cpu(), trained.head.cpu()), held, readings), run


def _seen(encoder: Encoder, examples: Sequence[Example]) -> tuple[list[Example], list[Tensor]]:
    """Usable examples and, in the place of cached features, of each one's seen steps none."""
    sizes = [encoder.layout(*e.written).n_seen for e in examples]
    kept = [(e, torch.zeros(n, 0)) for e, n in zip(examples, sizes, strict=True) if usable(e, n)]
    return [e for e, _ in kept], [nothing for _, nothing in kept]


@torch.no_grad()
def _logits(module: ReadingHead, examples: Sequence[Example], mask: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Hazard and gap logits of all examples, read `size` at a time; their shape is that of `mask`."""
    module.eval()
    hazard, gap = torch.zeros(mask.shape), torch.zeros(mask.shape)
    for start in range(0, len(examples), size):
        rows = slice(start, start + size)
        for whole, part in zip((hazard, gap), module(examples[rows]), strict=True):
            whole[rows, : part.shape[1]] = part.float().cpu()
    return hazard, gap
