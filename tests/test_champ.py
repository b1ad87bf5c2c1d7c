"""CHAMP's known answers, and running text split into steps."""

from statistics import median

import orjson
import pytest

from c2faith.dataset.chains import Dropped, Request
from c2faith.dataset.sources import champ
from c2faith.records import Chain, NaturalItem


@pytest.fixture(scope="module")
def of_champ():
    dropped = Dropped()
    return list(champ.read(champ.inputs(None), Request(natural=True), dropped)), dropped


def test_champ_has_its_known_counts(of_champ):
    found, dropped = of_champ
    lengths = [len(x.steps) for x in found if isinstance(x, Chain)]
    assert (dropped.read, len(lengths), median(lengths), sum(lengths)) == (270, 179, 7, 1331)
    items = [x for x in found if isinstance(x, NaturalItem)]
    assert len(items) + sum(dropped.natural.values()) == 540
    assert len(items) > 500 and sum(item.first_error == -1 for item in items) == 96
    assert len({item.item_id for item in items}) == len(items)


def test_champ_steps_carry_their_concepts(of_champ):
    chains = {x.problem_id: x for x in of_champ[0] if isinstance(x, Chain)}
    assert all(len(chain.concepts) == len(chain.steps) for chain in chains.values())
    # Read off the file: hints 0, 1, 2 in the first three steps, hint 2 and concept 3 in the fourth, then none.
    assert chains["P_Combinatorics_1"].concepts == ((0,), (1,), (2,), (2, 3), (), ())
    assert chains["P_Combinatorics_1"].answer == "239"


def test_champ_errors_lie_where_a_reader_finds_them(of_champ):
    items = [x for x in of_champ[0] if isinstance(x, NaturalItem)]
    assert all(-1 <= item.first_error < len(item.steps) for item in items)
    grouped = [
        x for x in items if x.problem_id == "P_Polynomial_22" and x.steps[0].startswith("To solve the equation")
    ]
    wrong = [item.steps[item.first_error] for item in grouped]
    assert (
        "Now, let's factor out the greatest common factor from each group:\n\ny^3(y + 4) - 2y(y + 2) + 1 = 0."
        in wrong
    )


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("One.\nTwo.\n\nThree.", ["One.", "Two.", "Three."]),
        ("We get\n\na = b.\n\nDone.", ["We get\n\na = b.", "Done."]),
        ("Case 1:\nx = 0.", ["Case 1:\nx = 0."]),
        ("So\n$$a\n\n= b$$\nEnd.", ["So\n$$a\n\n= b$$", "End."]),
        (
            "Then\n\\begin{align*}\na &= b \\\\\n&= c.\n\\end{align*}\nEnd.",
            ["Then\n\\begin{align*}\na &= b \\\\\n&= c.\n\\end{align*}", "End."],
        ),
        ("It is\n\\[\na = 1.\n\\]\nEnd.", ["It is\n\\[\na = 1.\n\\]", "End."]),
        ("a = 1.\nwhere a is real.", ["a = 1.\nwhere a is real."]),
        ("a_1 = 1\na_2 = 2\n...\na_9 = 9", ["a_1 = 1", "a_2 = 2\n...", "a_9 = 9"]),
        ("  Only one.  ", ["Only one."]),
        ("", []),
    ],
)
def test_running_text_is_split_by_lines_and_sense(text, steps):
    assert [text[begin:end] for begin, end in champ.split_steps(text)] == steps


def test_splitting_loses_nothing_but_white_space():
    for problem in orjson.loads(champ.inputs(None)["champ-dataset/v0.json"].read_bytes())["problems"].values():
        for annotation in problem["fws_annotations"].values():
            text, spans = annotation["text"], champ.split_steps(annotation["text"])
            assert "".join("".join(text[a:b] for a, b in spans).split()) == "".join(text.split())
