"""Packing prompts into token trees, by hand."""

import numpy as np
import pytest

from c2faith.judging.judges import local_scoring as scoring
from c2faith.judging.judges.local_scoring import Tree, pack, prompt


def test_admissible_answers_in_the_order_of_scores():
    assert scoring.admissible("detection", 9) == ['{"score": 0}', '{"score": 1}']
    assert scoring.admissible("localization", 11)[-2:] == ['{"index": 10}', '{"index": -1}']
    assert scoring.admissible("coverage", 9) == scoring.admissible("reference", 1)
    assert len(scoring.admissible("coverage", 9)) == 5


def test_what_answers_begin_with_belongs_to_the_prompt():
    made = prompt(3, [1, 2], [[7, 8, 5], [7, 8, 6, 5]])
    assert (made.ids, made.answers, made.longest) == ((1, 2, 7, 8), ((5,), (6, 5)), 6)


def test_a_tree_by_hand():
    """Prefix 9; prompts 9 1 2 and 9 1 3; answers "4 6" and "4 5 6" of the first, "5" and "4" of the second.

    Nodes in order of coming: 1, 2, then below 2 the answers' 4 and 4 5 (a last token is never fed), then 3.
    Read are 2 (→ 4), 4 (→ 6, 5), 5 (→ 6) and 3 (→ 5, 4); so 1 comes first in the row and the others after it.
    """
    tree = Tree()
    tree.add(scoring.Prompt(0, (9, 1, 2), ((4, 6), (4, 5, 6))), 1)
    tree.add(scoring.Prompt(1, (9, 1, 3), ((5,), (4,))), 1)
    assert tree.tokens == [1, 2, 4, 5, 3]
    assert tree.parents == [scoring.ROOT, 0, 1, 2, 0]
    assert tree.reads == {0: [[(1, 4), (2, 6)], [(1, 4), (2, 5), (3, 6)]], 1: [[(4, 5)], [(4, 4)]]}
    tokens, depths, visible, slot = tree.laid_out()
    assert tokens.tolist() == [1, 2, 4, 5, 3]
    assert depths.tolist() == [0, 1, 2, 3, 1]
    assert slot == {1: 0, 2: 1, 3: 2, 4: 3}
    expected = ["10000", "11000", "11100", "11110", "10001"]
    np.testing.assert_array_equal(visible, [[cell == "1" for cell in row] for row in expected])


def test_read_tokens_come_last_and_every_token_behind_its_parent():
    """The second prompt runs on where the first one ends: its unread tokens lie below a read one."""
    tree = Tree()
    tree.add(scoring.Prompt(0, (1,), ((5,), (6,))), 0)
    tree.add(scoring.Prompt(1, (1, 2, 3), ((5,), (6,))), 0)
    tree.add(scoring.Prompt(2, (4, 7), ((5,), (6,))), 0)
    tokens, depths, visible, slot = tree.laid_out()
    assert tokens.tolist() == [4, 1, 2, 3, 7]  # 4 alone is neither read nor below a read one
    assert depths.tolist() == [0, 0, 1, 2, 1]
    assert visible[3].tolist() == [False, True, True, True, False]
    assert {node: tokens[len(tokens) - len(slot) + place] for node, place in slot.items()} == {
        0: 1,
        1: 2,
        2: 3,
        4: 7,
    }


def prompts(*bodies):
    return [scoring.Prompt(key, tuple(ids), ((1,), (2,))) for key, ids in enumerate(bodies)]


def test_prompts_that_share_much_are_one_tree():
    system, problem = [7] * 10, list(range(100, 120))
    asked = prompts(
        system + problem + [50], system + [30] * 25, system + problem + [60, 61], system + problem + [50]
    )
    prefix, batches = pack(asked, 1000)
    assert prefix == tuple(system)
    assert [[sorted(tree.reads) for tree in batch] for batch in batches] == [[[1], [0, 2, 3]]]
    assert [[len(tree) for tree in batch] for batch in batches] == [[25, 20 + 1 + 2]]


@pytest.mark.parametrize("batch_tokens", [1, 30, 60, 1000])
def test_batches_keep_their_size_and_lose_nothing(batch_tokens):
    rng = np.random.default_rng(0)
    asked = prompts(*([7] * 5 + rng.integers(2, size=rng.integers(3, 60)).tolist() for _ in range(50)))
    _, batches = pack(asked, batch_tokens)
    assert sorted(key for batch in batches for tree in batch for key in tree.reads) == list(range(50))
    for batch in batches:
        padded = len(batch) * max(map(len, batch))
        assert padded <= batch_tokens or (len(batch) == 1 and len(batch[0].reads) == 1)
    lengths = [len(tree) for batch in batches for tree in batch]
    assert lengths == sorted(lengths, reverse=True)


def test_the_order_of_queries_does_not_move_the_batches():
    asked = prompts([1, 2, 3], [1, 2, 4, 5], [1, 9], [1, 2, 3])
    assert pack(asked, 6) == pack(asked[::-1], 6)


def test_one_prompt_keeps_its_last_token_for_reading():
    prefix, [[tree]] = pack(prompts([1, 2, 3]), 100)
    assert (prefix, tree.tokens) == ((1, 2), [3])
