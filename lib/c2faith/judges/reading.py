"""Forward passes of the score mode: a shared prefix read once, then batches of token trees."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from c2faith.judges.local_model import LocalModel
from c2faith.judges.scoring import Prompt, Tree


@torch.inference_mode()
def read_prefix(reader: LocalModel, prefix: Sequence[int]) -> Any:
    """The key-value cache of a prefix, for one row; None for an empty one."""
    if not prefix:
        return None
    from transformers import DynamicCache

    ids = torch.tensor([prefix], device=reader.device)
    cache = DynamicCache()
    reader.model(input_ids=ids, cache=cache, use_cache=True, logits_to_keep=1)
    return cache


@torch.inference_mode()
def read_trees(reader: LocalModel, trees: Sequence[Tree], cache: Any = None) -> dict[int, np.ndarray]:
    """Log probabilities of every prompt's answers, not normalized over them.

    Parameters
    ----------
    reader : LocalModel
    trees : sequence of Tree
        One batch: each tree a row, padded on the left.
    cache
        What `read_prefix` gave for the tokens before the trees.

    Returns
    -------
    dict
        Prompt key → (n_answers,) float64 array.
    """
    past = cache.get_seq_length() if cache is not None else 0
    length = max(map(len, trees))
    ids = np.zeros((len(trees), length), dtype=np.int64)
    positions = np.full_like(ids, past)
    # Padding sees the prefix and itself: a row that saw nothing would turn into NaN.
    visible = np.broadcast_to(
        np.eye(length, past + length, past, dtype=bool), (len(trees), length, past + length)
    ).copy()
    visible[:, :, :past] = True
    slots = []
    for row, tree in enumerate(trees):
        tokens, depths, sees, slot = tree.laid_out()
        start = length - len(tree)
        ids[row, start:], positions[row, start:] = tokens, past + depths
        visible[row, start:, past + start :] = sees
        slots.append(slot)
    device, dtype = reader.device, reader.model.dtype
    kept = max(map(len, slots))
    mask = torch.zeros(visible.shape, dtype=dtype).masked_fill_(torch.from_numpy(~visible), torch.finfo(dtype).min)
    repeated = copy.deepcopy(cache)
    if repeated is not None:
        repeated.batch_repeat_interleave(len(trees))
    logits = reader.model(
        input_ids=torch.from_numpy(ids).to(device),
        attention_mask=mask[:, None].to(device),
        position_ids=torch.from_numpy(positions).to(device),
        cache=repeated,
        use_cache=repeated is not None,
        logits_to_keep=kept,
    ).logits
    found = {}
    for tree, slot, row in zip(trees, slots, logits, strict=True):
        log_p = row[kept - len(slot) :].float().log_softmax(-1)
        for key, paths in tree.reads.items():
            pairs = [(slot[node], token) for path in paths for node, token in path]
            nodes, tokens = torch.tensor(pairs, device=log_p.device).T
            values = log_p[nodes, tokens].double().cpu().numpy()
            bounds = np.cumsum([0, *(len(path) for path in paths[:-1])])
            found[key] = np.add.reduceat(values, bounds)
    return found


@torch.inference_mode()
def read_plainly(reader: LocalModel, prompt: Prompt, answer: int) -> float:
    """The log probability of one answer by an ordinary pass over its prompt, nothing shared."""
    after = prompt.answers[answer]
    ids = torch.tensor([(*prompt.ids, *after[:-1])], device=reader.device)
    log_p = (
        reader.model(input_ids=ids, use_cache=False, logits_to_keep=len(after)).logits[0].float().log_softmax(-1)
    )
    return float(log_p[range(len(after)), list(after)].sum())
