"""The score mode: how probable each admissible answer is, with what prompts have in common read once.

Prompts of one task begin alike, and those of one chain (its twin, its deletion levels) stay alike for long. So
prompts are sorted by their tokens and neighbours merged into a tree in which every shared token stands once; the
answers' tokens hang below each prompt's end. A token attends to its ancestors only and its position is its
depth, so one forward pass over the tree gives exactly the probabilities of separate passes.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate

import numpy as np
import torch
from transformers import DynamicCache

from c2faith.judging import answers, tasks
from c2faith.judging.judges.local_model import LocalModel, shared_length

Tokens = Sequence[int]
ROOT = -1  # the parent of first tokens: the end of the prefix that all prompts share
WORTH_SHARING = 16  # tokens; below that two prompts share a tree for nothing
STRIDE = 512  # tokens a pass reads of each row: attention costs what is behind them, not the whole row


def admissible(task: str, n_steps: int) -> list[str]:
    """The JSON texts a judge may answer, in the order of `Reply.scores`.

    >>> admissible("localization", 2)
    ['{"index": 0}', '{"index": 1}', '{"index": -1}']
    """
    kind = tasks.get(task).answer
    values = sorted(answers.admissible(kind, n_steps), key=lambda value: value < 0)
    return [f'{{"{answers.key(kind)}": {value}}}' for value in values]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One query in tokens; `answers` follow `ids` and no two are alike, none the beginning of another."""

    key: int
    ids: tuple[int, ...]
    answers: tuple[tuple[int, ...], ...]

    @property
    def longest(self) -> int:
        return len(self.ids) + max(map(len, self.answers))


def prompt(key: int, ids: Tokens, answers: Sequence[Tokens]) -> Prompt:
    """A prompt whose end is moved behind what all answers begin with.

    >>> prompt(0, [1, 2], [[7, 8, 5], [7, 9, 5]])
    Prompt(key=0, ids=(1, 2, 7), answers=((8, 5), (9, 5)))
    """
    alike = shared_length(*answers)
    return Prompt(key, (*ids, *answers[0][:alike]), tuple(tuple(answer[alike:]) for answer in answers))


@dataclass(slots=True)
class Tree:
    """Merged prompts. `reads` holds, for each answer of a prompt, the (node, next token) pairs of its path."""

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    reads: dict[int, list[list[tuple[int, int]]]] = field(default_factory=dict)
    _children: dict[tuple[int, int], int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, prompt: Prompt, prefix: int) -> None:
        """Merge a prompt in, but for its first `prefix` tokens."""
        end = reduce(self._child, prompt.ids[prefix:], ROOT)
        self.reads[prompt.key] = [
            list(zip(accumulate(answer[:-1], self._child, initial=end), answer, strict=True))
            for answer in prompt.answers
        ]

    def _child(self, parent: int, token: int) -> int:
        node = self._children.setdefault((parent, token), len(self.tokens))
        if node == len(self.tokens):
            self.tokens.append(token)
            self.parents.append(parent)
        return node

    def laid_out(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[int, int]]:
        """The tree as one row of a batch: every token behind its parent, those that are read last.

        Tokens and their depths, (n,), where 0 stands right behind the shared prefix; whether the row's token sees
        the column's, (n, n): its ancestors and itself; and where among the last tokens a read node, or one below
        it, stands.
        """
        late = np.zeros(len(self), dtype=bool)
        late[[node for paths in self.reads.values() for path in paths for node, _ in path]] = True
        sees = np.eye(len(self), dtype=bool)  # in the order of coming, in which a parent precedes its children
        for node, parent in enumerate(self.parents):
            if parent != ROOT:
                late[node] |= late[parent]
                sees[node] |= sees[parent]
        order = np.argsort(late, kind="stable")
        slot = {int(node): index for index, node in enumerate(np.flatnonzero(late))}
        return np.array(self.tokens)[order], sees.sum(1)[order] - 1, sees[np.ix_(order, order)], slot


def pack(prompts: Sequence[Prompt], batch_tokens: int) -> tuple[tuple[int, ...], list[list[Tree]]]:
    """The prefix that all prompts share, and batches of trees holding the rest, longest trees first.

    A batch padded to its longest tree has at most `batch_tokens` tokens, unless a single prompt has more. The
    order depends on the prompts alone.
    """
    prompts = sorted(prompts, key=lambda prompt: (prompt.ids, prompt.key))
    prefix = shared_length(*(prompt.ids[:-1] for prompt in prompts))  # each keeps a token of its own to be read at
    trees = sorted(_trees(prompts, prefix, batch_tokens), key=len, reverse=True)
    batches: list[list[Tree]] = []
    for tree in trees:
        if not batches or len(batches[-1][0]) * (len(batches[-1]) + 1) > batch_tokens:
            batches.append([])
        batches[-1].append(tree)
    return prompts[0].ids[:prefix], batches


def _trees(prompts: Sequence[Prompt], prefix: int, limit: int) -> Iterator[Tree]:
    tree, previous = Tree(), prompts[0].ids
    for prompt in prompts:
        shared = shared_length(previous, prompt.ids)
        added = len(prompt.ids) - shared + sum(len(answer) - 1 for answer in prompt.answers)
        if len(tree) and (shared - prefix < WORTH_SHARING or len(tree) + added > limit):
            yield tree
            tree = Tree()
        tree.add(prompt, prefix)
        previous = prompt.ids
    yield tree


def score(
    reader: LocalModel, prompts: Sequence[Prompt], batch_tokens: int
) -> Iterator[tuple[int, np.ndarray, float]]:
    """(key, log probabilities of its answers, seconds) of every prompt, in whatever order they are read."""
    prefix, batches = pack(prompts, batch_tokens)
    cache = read_prefix(reader, prefix)
    for batch in batches:
        started = time.perf_counter()
        found = read_trees(reader, batch, cache)
        seconds = (time.perf_counter() - started) / len(found)
        yield from ((key, log_p, seconds) for key, log_p in found.items())


@torch.inference_mode()
def read_prefix(reader: LocalModel, prefix: Tokens) -> DynamicCache:
    """The key-value cache of a prefix, for one row."""
    cache = DynamicCache()
    if prefix:
        ids = torch.tensor([prefix], device=reader.device)
        reader.model(input_ids=ids, cache=cache, use_cache=True, logits_to_keep=1)
    return cache


@torch.inference_mode()
def read_trees(reader: LocalModel, trees: Sequence[Tree], prefix: DynamicCache) -> dict[int, np.ndarray]:
    """Log probabilities of every prompt's answers, (n_answers,) float64, not normalized over them.

    The trees are one batch: each is a row, padded on the left, behind the tokens of `prefix`.
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
    answers = [reader.encode(text) for text in admissible("detection", 1)]
    prompts = [prompt(key, reader.encode_chat([("user", text)]), answers) for key, text in enumerate(questions)]
    half = shared_length(*(asked.ids for asked in prompts)) // 2
    tree = Tree()
    for asked in prompts:
        tree.add(asked, half)
    found = read_trees(reader, [tree], read_prefix(reader, prompts[0].ids[:half]))
    return max(float(np.abs(found[asked.key] - read_plainly(reader, asked)).max()) for asked in prompts)
