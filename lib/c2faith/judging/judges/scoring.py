"""What the score mode reads, planned without a model: admissible answers, and prompts packed into token trees.

Prompts of one task begin alike, and those of one chain (its twin, its deletion levels) stay alike for long. So
prompts are sorted by their tokens and neighbours merged into a tree in which every shared token stands once; the
answers' tokens hang below each prompt's end. A token attends to its ancestors only and its position is its
depth, so one forward pass over the tree gives exactly the probabilities of separate passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from c2faith.judging import answers, tasks

Tokens = Sequence[int]
ROOT = -1  # the parent of first tokens: the end of the prefix that all prompts share
WORTH_SHARING = 16  # tokens; below that two prompts share a tree for nothing


def admissible(task: str, n_steps: int) -> list[str]:
    """The JSON texts a judge may answer, in the order of `Reply.scores`.

    >>> admissible("localization", 2)
    ['{"index": 0}', '{"index": 1}', '{"index": -1}']
    """
    kind = tasks.get(task).answer
    values = sorted(answers.admissible(kind, n_steps), key=lambda value: value < 0)
    return [f'{{"{answers.key(kind)}": {value}}}' for value in values]


def shared_length(*sequences: Tokens) -> int:
    """How many first tokens all sequences have in common.

    >>> shared_length([5, 6, 7], [5, 6], [5, 6, 8])
    2
    """
    first, last = min(sequences), max(sequences)
    for index, (one, other) in enumerate(zip(first, last, strict=False)):
        if one != other:
            return index
    return min(len(first), len(last))


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
        end = ROOT
        for token in prompt.ids[prefix:]:
            end = self._child(end, token)
        self.reads[prompt.key] = [self._path(end, answer) for answer in prompt.answers]

    def _path(self, node: int, answer: Tokens) -> list[tuple[int, int]]:
        path = []
        for position, token in enumerate(answer):
            path.append((node, token))
            if position + 1 < len(answer):
                node = self._child(node, token)
        return path

    def _child(self, parent: int, token: int) -> int:
        node = self._children.setdefault((parent, token), len(self.tokens))
        if node == len(self.tokens):
            self.tokens.append(token)
            self.parents.append(parent)
        return node

    def laid_out(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[int, int]]:
        """The tree as one row of a batch: every token behind its parent, those that are read last.

        Returns
        -------
        tokens, depths : (n,) int arrays
            Depth 0 stands right behind the shared prefix.
        visible : (n, n) bool array
            Whether the row's token sees the column's: its ancestors and itself.
        slot : dict
            Where among the last ``len(slot)`` tokens a read node, or one below it, stands.
        """
        n = len(self)
        late = np.zeros(n, dtype=bool)
        late[[node for paths in self.reads.values() for path in paths for node, _ in path]] = True
        for node, parent in enumerate(self.parents):
            late[node] |= parent != ROOT and late[parent]
        order = np.argsort(late, kind="stable")
        place = np.argsort(order)
        depths, visible = np.zeros(n, dtype=int), np.zeros((n, n), dtype=bool)
        for node, parent in enumerate(self.parents):
            if parent != ROOT:
                depths[place[node]] = depths[place[parent]] + 1
                visible[place[node]] = visible[place[parent]]
            visible[place[node], place[node]] = True
        slot = {int(node): index for index, node in enumerate(np.flatnonzero(late))}
        return np.array(self.tokens)[order], depths, visible, slot


def pack(prompts: Sequence[Prompt], batch_tokens: int) -> tuple[tuple[int, ...], list[list[Tree]]]:
    """The prefix that all prompts share, and batches of trees holding the rest, longest trees first.

    A batch padded to its longest tree has at most `batch_tokens` tokens, unless a single prompt has more. The
    order depends on the prompts alone.
    """
    prompts = sorted(prompts, key=lambda prompt: (prompt.ids, prompt.key))
    shortest = min(len(prompt.ids) for prompt in prompts)
    prefix = min(shared_length(prompts[0].ids, prompts[-1].ids), shortest - 1)
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
