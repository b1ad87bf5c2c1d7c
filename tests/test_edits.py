"""Edit types (Table 6, Appendix E): one boundary case a test; and the features of Table 5."""

import math
from difflib import SequenceMatcher

import pytest

from c2faith.dataset.edits import EDIT_TYPES, edit_type, features, math_symbol_density, similarity

LONG = "Now we can see that the value in question, by the formula above, is"  # keeps one-character edits above 0.9


def test_the_papers_numeric_swap():
    assert edit_type(f"{LONG} 5!=120, as wanted.", f"{LONG} 4!=24, as wanted.") == "numeric_swap"


def test_the_papers_operator_swap_is_in_words():
    before = f"{LONG} found when we add 19x to both of the sides of the equation."
    after = f"{LONG} found when we subtract 19x to both of the sides of the equation."
    assert similarity(before, after) > 0.9
    assert edit_type(before, after) == "operator_swap"


@pytest.mark.parametrize(
    ("before", "after"),
    [("a+b", "a-b"), ("a×b", "a/b"), ("a=b", "a<b"), ("a>b", "a<b"), ("a≥b", "a<b"), (r"a \leq b", r"a \geq b"),
     ("a·b", "a+b"), ("x−y", "x+y")],
)  # fmt: skip
def test_operators_in_their_spellings(before, after):
    assert edit_type(f"{LONG} {before}.", f"{LONG} {after}.") == "operator_swap"


def test_a_number_and_an_operator_changed_is_an_operator_swap():
    assert edit_type(f"{LONG} 3+x.", f"{LONG} 4-x.") == "operator_swap"


def test_a_hyphen_is_no_operator():
    assert edit_type(f"{LONG} a well-known one.", f"{LONG} a well known one.") == "other"


def test_a_dropped_number_is_a_numeric_swap():
    assert edit_type(f"{LONG} 2x.", f"{LONG} x.") == "numeric_swap"


def test_above_nine_tenths_with_neither_is_other():
    assert edit_type(f"{LONG} even.", f"{LONG} odd.") == "other"


def test_equal_texts_are_other():
    assert edit_type("x=1", "x=1") == "other"


# Of two texts of 10 characters each, k of which agree, the ratio is 2k/20: 18/20 = 0.9, 16/20 = 0.8, 10/20 = 0.5.
def test_nine_tenths_belongs_to_minor():
    assert similarity("abcdefghi1", "abcdefghi2") == 0.9
    assert edit_type("abcdefghi1", "abcdefghi2") == "minor_rewrite"


def test_eight_tenths_belongs_to_minor():
    assert similarity("abcdefgh12", "abcdefgh34") == 0.8
    assert edit_type("abcdefgh12", "abcdefgh34") == "minor_rewrite"


def test_just_below_eight_tenths_is_moderate():
    assert edit_type("abcdefg123", "abcdefg456") == "moderate_rewrite"  # 14/20


def test_one_half_belongs_to_moderate():
    assert similarity("abcde12345", "abcde67890") == 0.5
    assert edit_type("abcde12345", "abcde67890") == "moderate_rewrite"


def test_just_below_one_half_is_major():
    assert edit_type("abcd123456", "abcd7890ef") == "major_rewrite"  # 8/20


def test_empty_perturbed_step_is_major():
    assert edit_type("x=1", "") == "major_rewrite"


def test_types_are_the_papers_and_other():
    assert EDIT_TYPES == (
        "numeric_swap", "operator_swap", "minor_rewrite", "moderate_rewrite", "major_rewrite", "other",
    )  # fmt: skip


def test_similarity_is_the_standard_librarys_default_ratio():
    texts = [LONG * 4, (LONG * 4).replace("value", "number"), "x=1", ""]
    for one in texts:
        for other in texts:
            assert similarity(one, other) == SequenceMatcher(None, one, other).ratio()


@pytest.mark.parametrize(
    ("step", "density"),
    [
        ("x+1=2", 4 / 5),  # + 1 = 2 of 5
        (r"\frac12 = y", 8 / 9),  # \frac, 1, 2, = of \frac12=y
        ("so we add", 0.0),
        ("a b", 0.0),
    ],
)
def test_math_symbol_density_by_hand(step, density):
    assert math_symbol_density(step) == pytest.approx(density)


def test_density_of_nothing_is_undefined():
    assert math.isnan(math_symbol_density("  "))


def test_features_by_hand():
    found = features("So x=12.", "So x=13.", target=3, n_steps=12)
    assert found == {
        "math_symbol_density": pytest.approx(3 / 7),  # = 1 3 of Sox=13.
        "edit_similarity": 14 / 16,
        "relative_position": 0.25,
        "word_count": 2.0,
        "chain_length": 12.0,
        "character_count": 8.0,
    }
