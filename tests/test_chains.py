"""Dedupe, one chain a problem, seeded sample: what is kept depends on the seed, not on the order of records."""

from collections import Counter
from itertools import permutations

import orjson
import pytest

from c2faith import dataset
from c2faith.dataset.chains import Draw, balanced, chain, load_chains, natural_item, parse_limit
from c2faith.records import Chain, InputError

STEPS = ("a", "b", "c", "d", "e")


def made(problem, solution=0):
    return chain("jsonl", f"problem {problem}", [f"{step} {solution}" for step in STEPS])


def select_chains(rows, *, limit=450, seed=0):
    draw = Draw(seed)
    for row in rows:
        draw.add(row)
    return draw.sample(limit), draw.dropped


def test_duplicates_go_before_one_chain_a_problem():
    # 2 problems: p with solutions 0, 0, 0, 1 and q with 0: 2 duplicates, then 1 more of p's two solutions.
    chains, dropped = select_chains([made("p"), made("p"), made("q"), made("p", 1), made("p")])
    assert {c.question for c in chains} == {"problem p", "problem q"} and len(chains) == 2
    assert dropped == {"same problem and steps": 2, "another solution of its problem kept": 1}


def test_a_repeated_solution_is_no_likelier_to_be_kept():
    repeated = [made("p")] * 9 + [made("p", 1)]
    kept = Counter(select_chains(repeated, seed=seed)[0][0] == made("p") for seed in range(400))
    # Two distinct solutions: Binomial(400, 1/2) lies within 200 ± 50 but for a chance of 6e-7.
    assert 150 < kept[True] < 250


def test_the_order_of_the_records_does_not_matter():
    rows = [made("p"), made("p", 1), made("q"), made("r")]
    outcomes = {tuple(select_chains(order, limit=2, seed=5)[0]) for order in permutations(rows)}
    assert len(outcomes) == 1


def test_a_smaller_sample_begins_a_larger_one():
    rows = [made(problem) for problem in range(40)]
    large, _ = select_chains(rows, limit=30, seed=1)
    small, dropped = select_chains(rows, limit=7, seed=1)
    assert large[:7] == small and dropped == {"beyond the limit": 33}
    assert set(select_chains(rows, limit=7, seed=2)[0]) != set(small)


def test_every_problem_is_as_likely_to_be_sampled():
    rows = [made(problem) for problem in range(10)]
    counts = Counter(c.question for seed in range(500) for c in select_chains(rows, limit=3, seed=seed)[0])
    # Each is in with chance 3/10: 150 of 500, standard deviation 10.2; 5 of them are 51.
    assert all(99 < count < 201 for count in counts.values()) and len(counts) == 10


def natural(problem, solution, first_error):
    return natural_item("champ", f"problem {problem}", [f"{step} {solution}" for step in STEPS], first_error)


def test_natural_items_are_two_a_problem_and_at_most_half_correct():
    draw = Draw(0, keep=2)
    for problem in range(4):
        for solution in range(3):
            draw.add(natural(problem, solution, first_error=2 if (problem, solution) == (0, 0) else -1))
    items = balanced(draw, limit=4)
    wrong = [item for item in items if item.first_error >= 0]
    assert len(items) == 2 * len(wrong)
    assert draw.dropped["another solution of its problem kept"] == 4
    assert draw.dropped["more correct than wrong solutions"] == 8 - len(items)


def test_without_a_wrong_solution_there_is_no_natural_item():
    draw = Draw(0, keep=2)
    draw.add(natural(0, 0, first_error=-1))
    assert balanced(draw, limit=4) == []


def test_names_come_from_content():
    assert made("p").chain_id == made("p").chain_id != made("p", 1).chain_id
    assert made("p").problem_id == made("p", 1).problem_id != made("q").problem_id
    # A step's end is part of the name: moving a word to the next step makes another chain.
    assert chain("jsonl", "q", ["a b", "c"]).chain_id != chain("jsonl", "q", ["a", "b c"]).chain_id


@pytest.mark.parametrize(
    ("asked", "means"), [(8, (8, True)), ("8", (8, True)), (" up to 450 ", (450, False)), ("all", (None, False))]
)
def test_limits_as_typed(asked, means):
    assert parse_limit(asked) == means


@pytest.mark.parametrize("asked", [0, "0", "up to 0", "-3", "many", "", 2.5, True])
def test_a_bad_limit_is_refused(asked):
    with pytest.raises(
        InputError, match=r"^LIMIT=.*: must be a whole number of at least 1, 'up to' one, or 'all'$"
    ):
        parse_limit(asked)


def test_at_most_the_limit_unless_so_many_are_required():
    chains = load_chains("champ")
    assert len(chains) == 179 and all(isinstance(c, Chain) for c in chains)
    with pytest.raises(InputError, match=r"^LIMIT=450: champ has only 179 perfect chains .*ask for at most 179"):
        load_chains("champ", require=True)


def test_no_limit_takes_all_that_there_are():
    rows = [made(problem) for problem in range(40)]
    everything, dropped = select_chains(rows, limit=None)
    assert everything == select_chains(rows, limit=40)[0] and not dropped
    assert load_chains("champ", limit=None, require=True) == load_chains("champ")
    built = dataset.build("champ", limit=None, natural_limit=None)
    assert built.manifest["parameters"]["limit"] is None and len(built.chains) == 179
    assert (
        built.manifest["counts"]["natural"]
        == dataset.build("champ").manifest["counts"]["natural"]
        == len(built.natural)
    )
    assert dataset.differing(dataset.rebuild(built.manifest), built.manifest) == []


def test_synthetic_chains_need_a_limit():
    with pytest.raises(InputError, match=r"^LIMIT=all: synthetic chains have no end; say how many$"):
        load_chains("synthetic", limit=None)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"limit": 0}, "LIMIT=0: must be a whole number of at least 1"),
        ({"limit": "8"}, "LIMIT='8': must be"),
        ({"min_steps": 0}, "MIN_STEPS=0: must be"),
        ({"seed": -1}, "SEED=-1: must be a whole number of at least 0"),
        ({"seed": True}, "SEED=True: must be"),
    ],
)
def test_a_bad_number_is_refused(given, complaint):
    with pytest.raises(InputError, match=complaint):
        load_chains("synthetic", **given)


def test_no_chain_at_all_is_an_error(tmp_path):
    path = tmp_path / "short.jsonl"
    path.write_bytes(orjson.dumps({"question": "q", "steps": ["a"]}))
    with pytest.raises(InputError, match="SOURCE=jsonl: has no perfect chain of at least 5 steps"):
        load_chains("jsonl", path=str(path))
    assert len(load_chains("jsonl", path=str(path), min_steps=1)) == 1
