"""Forward passes of the score mode: a shared prefix read once, then batches of token trees."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from transformers import DynamicCache

from c2faith.judging.judges import scoring
from c2faith.judging.judges.local_model import LocalModel
from c2faith.judging.judges.scoring import Prompt, Tree

STRIDE = 512  # tokens a pass reads of each row: attention costs what is behind them, not the whole row


@torch.inference_mode()
def read_prefix(reader: LocalModel, prefix: Sequence[int]) -> DynamicCache:
    """The key-value cache of a prefix, for one row."""
    cache = DynamicCache()
    if prefix:
        ids = torch.tensor([prefix], device=reader.device)
        reader.model(input_ids=ids, cache=cache, use_cache=True, logits_to_keep=1)
    return cache


@torch.inference_mode()
def read_trees(reader: LocalModel, trees: Sequence[Tree], prefix: DynamicCache) -> dict[int, np.ndarray]:
    """Log probabilities of every prompt's answers, not normalized over them.

    Parameters
    ----------
    reader : LocalModel
    trees : sequence of Tree
        One batch: each tree a row, padded on the left.
    prefix
        What `read_prefix` gave for the tokens before the trees.

    Returns
    -------
    dict
        Prompt key → (n_answers,) float64 array.
    """
    past, length = prefix.get_seq_length(), max(map(len, trees))
    ids = torch.zeros((len(trees), length), dtype=torch.long)
    positions = torch.full_like(ids, past)
    # Padding sees the prefix and itself: a row that saw nothing would turn into NaN.
    visible = torch.eye(length, dtype=torch.bool).repeat(len(trees), 1, 1)
    slots = []
    for row, tree in enumerate(trees):
        tokens, depths, sees, slot = tree.laid_out()
        start = length - len(tree)
        ids[row, start:] = torch.from_numpy(tokens)
        positions[row, start:] += torch.from_numpy(depths)
        visible[row, start:, start:] = torch.from_numpy(sees)
        slots.append(slot)
    kept = max(map(len, slots))
    cache = copy.deepcopy(prefix)
    cache.batch_repeat_interleave(len(trees))
    start = 0
    for stop in (*range(STRIDE, length - kept, STRIDE), length):
        hidden = ~visible[:, None, start:stop, :stop]
        mask = torch.zeros((len(trees), 1, stop - start, past + stop), dtype=reader.model.dtype)
        mask[..., past:].masked_fill_(hidden, torch.finfo(mask.dtype).min)
        logits = reader.model(
            input_ids=ids[:, start:stop].to(reader.device),
            attention_mask=mask.to(reader.device),
            position_ids=positions[:, start:stop].to(reader.device),
            cache=cache,
            use_cache=True,
            logits_to_keep=kept if stop == length else 1,
        ).logits
        start = stop
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
def read_plainly(reader: LocalModel, prompt: Prompt) -> list[float]:
    """The log probability of each answer by an ordinary pass of its own, nothing shared."""
    found = []
    for answer in prompt.answers:
        ids = torch.tensor([(*prompt.ids, *answer[:-1])], device=reader.device)
        logits = reader.model(input_ids=ids, use_cache=False, logits_to_keep=len(answer)).logits[0]
        found.append(float(logits.float().log_softmax(-1)[range(len(answer)), list(answer)].sum()))
    return found


def largest_difference(reader: LocalModel, questions: Sequence[str]) -> float:
    """How far tree and plain readings of two or more short questions lie apart, in nats.

    Rounding if the model attends as trees assume; much more, or an error of its own, if it does not.
    """
    answers = [reader.encode(text) for text in scoring.admissible("detection", 1)]
    prompts = [
        scoring.prompt(key, reader.encode_chat([("user", text)]), answers) for key, text in enumerate(questions)
    ]
    half = scoring.shared_length(*(prompt.ids for prompt in prompts)) // 2
    tree = Tree()
    for prompt in prompts:
        tree.add(prompt, half)
    found = read_trees(reader, [tree], read_prefix(reader, prompts[0].ids[:half]))
    return max(float(np.abs(found[prompt.key] - read_plainly(reader, prompt)).max()) for prompt in prompts)
