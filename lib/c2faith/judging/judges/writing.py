"""Generation of the generate mode: batches of prompts, greedy or sampled with each prompt's own noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from c2faith.judging.judges.local_model import LocalModel


@torch.inference_mode()
def write(
    reader: LocalModel,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int,
    temperature: float,
    generators: Sequence[np.random.Generator],
    *,
    until: str | None = None,
) -> list[tuple[str, int, str]]:
    """Continue prompts, to the end of the turn or before the text `until`.

    Returns
    -------
    list of (text, n_tokens, finish_reason)
        `finish_reason` is ``stop``, or ``length`` where `max_new_tokens` came before the end of the turn.
    """
    length = max(map(len, prompts))
    pad = reader.tokenizer.pad_token_id
    if pad is None:
        pad = reader.tokenizer.eos_token_id
    ids = torch.full((len(prompts), length), pad)
    mask = torch.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, length - len(prompt) :] = torch.tensor(prompt)
        mask[row, length - len(prompt) :] = 1
    out = reader.model.generate(
        input_ids=ids.to(reader.device),
        attention_mask=mask.to(reader.device),
        max_new_tokens=max_new_tokens,
        do_sample=False,
        temperature=None,
        top_p=None,
        top_k=None,
        pad_token_id=pad,
        logits_processor=[_noise(temperature, generators)] if temperature else [],
        **({"stop_strings": [until], "tokenizer": reader.tokenizer} if until else {}),
    )
    ends = reader.model.generation_config.eos_token_id
    ends = set(ends if isinstance(ends, list) else [ends])
    return [_ended(reader, row, ends, until) for row in out[:, length:].tolist()]


def _ended(
    reader: LocalModel, tokens: list[int], ends: set[int | None], until: str | None = None
) -> tuple[str, int, str]:
    end = next((index for index, token in enumerate(tokens) if token in ends), None)
    text = reader.tokenizer.decode(tokens[:end], skip_special_tokens=True)
    if until and until in text:
        written = next(n for n in range(1, len(tokens) + 1) if until in reader.tokenizer.decode(tokens[:n]))
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
