"""Writing by a local model: batches of prompts continued, greedily or sampled with each prompt's own noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from c2faith.judging.judges.local_model import LocalModel


def write(
    writer: LocalModel,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int,
    temperature: float,
    generators: Sequence[np.random.Generator],
    *,
    until: str | None = None,
) -> list[tuple[str, int, str]]:
    """(text, tokens, finish reason) of each prompt's continuation, up to the end of the turn or the text `until`.

    The reason is ``stop``, or ``length`` where `max_new_tokens` came first.
    """
    asked = writer.tokenizer.pad({"input_ids": prompts}, padding_side="left", return_tensors="pt")
    out = writer.model.generate(
        **asked.to(writer.device),
        max_new_tokens=max_new_tokens,
        do_sample=False,
        temperature=None,
        top_p=None,
        top_k=None,
        pad_token_id=writer.tokenizer.pad_token_id,
        logits_processor=[_noise(temperature, generators)] if temperature else [],
        **({"stop_strings": [until], "tokenizer": writer.tokenizer} if until else {}),
    )
    ends = writer.model.generation_config.eos_token_id
    ends = set(ends if isinstance(ends, list) else [ends])
    return [_ended(writer, row, ends, until) for row in out[:, asked["input_ids"].shape[1] :].tolist()]


def _ended(
    writer: LocalModel, tokens: list[int], ends: set[int | None], until: str | None = None
) -> tuple[str, int, str]:
    end = next((index for index, token in enumerate(tokens) if token in ends), None)
    text = writer.tokenizer.decode(tokens[:end], skip_special_tokens=True)
    if until and until in text:
        written = next(n for n in range(1, len(tokens) + 1) if until in writer.tokenizer.decode(tokens[:n]))
        return text[: text.index(until)], written, "stop"
    return text, len(tokens) if end is None else end + 1, "length" if end is None else "stop"


def _noise(temperature: float, generators: Sequence[np.random.Generator]) -> Callable:
    """Gumbel noise on the logits: the largest is then a draw from softmax(logits / temperature).

    Each row draws from its own generator, so what a prompt gets does not depend on its batch.
    """

    def add(_: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        noise = np.stack([generator.gumbel(size=logits.shape[-1]) for generator in generators])
        return logits.float() + temperature * torch.from_numpy(noise).to(logits.device, torch.float32)

    return add
