"""Negators and the validation of what they write."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from c2faith.dataset.algebra import equivalent, statements
from c2faith.dataset.chains import load_chains
from c2faith.dataset.edits import edit_type
from c2faith.dataset.negate import flaw, make, rules
from c2faith.dataset.negate.claims import Edit, apply, is_claimed
from c2faith.dataset.negate.formulas import math_edits, other_numbers
from c2faith.dataset.negate.rules import TABLE6, edits
from c2faith.dataset.perturb import NoNegation, middle_region, replace_step
from c2faith.judging import prompts
from c2faith.judging.judges.base import Reply
from c2faith.records import Chain, InputError, dump, rng, write_jsonl

SAMPLES = os.environ.get("C2FAITH_SAMPLES")


@pytest.fixture(scope="module")
def champ():
    return load_chains("champ")[:60]


@pytest.fixture(scope="module")
def items(champ):
    negator = make("rules", chains=champ)
    return [replace_step(chain, negator, rng(0, "causality", chain.chain_id)) for chain in champ]


# --- validation -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("original", "candidate", "reason"),
    [
        ("So x=2.", "", "empty"),
        ("So x=2.", "  \n", "empty"),
        ("So x=2.", "so  x = 2", "unchanged"),
        ("So x=2.", "Thus, x=2.", "unchanged"),
        (r"So $\frac{1}{2}$.", r"So $\dfrac{1}{2}$.", "unchanged"),
        ("The value is a+b.", "The value is b+a.", "equivalent"),
        ("It is 2/4.", "It is 1/2.", "equivalent"),
        (r"It is $\frac{2}{4}$.", r"It is $\frac{1}{2}$.", "equivalent"),
        ("We get x=y.", "We get y=x.", "equivalent"),
        ("We get x<y.", "We get y>x.", "equivalent"),
        ("We get 2x=4.", "We get x=2.", "equivalent"),
        ("We get 2+2=4.", "We get 2+3=5.", "still_true"),
        ("We get (a+b)^2=a^2+2ab+b^2.", "We get (a-b)^2=a^2-2ab+b^2.", "still_true"),
        ("We get $x=2$ here.", "We get $x=3", "truncated"),
        ("We get f(x)=2.", "We get f(x", "truncated"),
        ("We get x=2.", "We get x=", "truncated"),
        ("We get x=2.", "We see that the", "truncated"),
    ],
)
def test_what_is_no_negation(original, candidate, reason):
    assert flaw(original, candidate) == reason


@pytest.mark.parametrize(
    ("original", "candidate"),
    [
        ("So x=2.", "So x=3."),
        ("So a+b.", "So a-b."),
        ("We get 2+2=4.", "We get 2+2=5."),
        ("We get x<y.", "We get x>y."),
        ("n is even.", "n is odd."),
        ("We have a=b and c=d.", "We have a=c and b=d."),
        ("So $x \\le 2$.", "So $x \\ge 2$."),
        ("So x=1.5 is it.", "So x=15 is it."),
    ],
)
def test_what_is_one(original, candidate):
    assert flaw(original, candidate) is None


def test_a_step_that_looked_cut_before_may_look_so_after():
    assert flaw("so we get (x=2", "so we get (x=3") is None


# --- claims, suppositions, denials ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("If x=2, then y=3.", {"y=3"}),
        ("Let x=2, and we have y=3.", {"y=3"}),
        ("Suppose that the formula is true up to n-1.", set()),
        ("Setting x=1, we get 4a+3b=0.", {"4a+3b=0"}),
        ("We cannot have x=2.", set()),
        ("The inequalities ab>3cd and cd>3ab cannot be true.", set()),
        ("For d=2, 5y^2=61 with no integer solution.", set()),
        ("We cannot have x=2, so y=3.", {"y=3"}),
    ],
)
def test_only_claims_are_edited(step, expected):
    claimed = {step[s.start : s.end] for s in statements(step) if s.is_claim and is_claimed(step, s.start, s.end)}
    assert claimed == expected
    touched = {part for edit in math_edits(step) for part in edit.parts}
    assert all(any(step.index(c) <= start <= step.index(c) + len(c) for c in expected) for start, _, _ in touched)


@pytest.mark.parametrize(
    ("step", "number"),
    [
        ("By Step 3, it follows.", "3"),
        ("In equation (2) we see it.", "2"),
        ("The 3rd one is it.", "3"),
        ("So x_1 is it.", "1"),
        ("The sum is 1+2+...+n.", "2"),
        ("It ends in 00.", "00"),
        ("It is an 8 by now.", "8"),
        ("Now the 1s are it.", "1"),
    ],
)
def test_numbers_that_are_no_claims_stay(step, number):
    assert not [
        e for e in math_edits(step) if e.kind == "number" and any(step[a:b] == number for a, b, _ in e.parts)
    ]


def numbers_at(step, text):
    token = next(t for s in statements(step) for t in s.tokens if step[t.start : t.end] == text)
    return other_numbers(step, token, lone=False)


def test_bounds_only_get_stronger():
    assert all(int(n) > 13 for n in numbers_at("We need at least 13 of them.", "13"))
    assert all(int(n) < 13 for n in numbers_at("We need at most 13 of them.", "13"))
    assert all(int(n) < 13 for n in numbers_at(r"So $x \leq 13$.", "13"))


def test_no_number_looks_odd():
    assert "1" not in numbers_at("So 2x=y.", "2")  # no 1x
    assert not {"0", "1"} & set(numbers_at("So x^2=y.", "2"))
    assert all(not n.startswith("-") for n in numbers_at("There are 1 and y.", "1"))


def test_articles_agree():
    steps = ("It is a positive number.", "It is an irrational number.", "So f has an even degree.")
    words = [apply(step, [edit]) for step in steps for edit in edits(step) if edit.kind == "opposite"]
    assert {"It is a rational number.", "It is a negative number.", "So f has an odd degree."} <= set(words)


def test_term_edits_by_hand():
    step = "So a_n=x*y+z."
    found = {apply(step, [edit]) for edit in math_edits(step) if edit.kind in ("term", "operator")}
    assert {"So a_n=x*y.", "So a_n=x+z.", "So a_n=x*y-z.", "So a_n=x+y+z.", "So a_n=x*y+z+1."} <= found


def test_a_new_rule_is_a_function_and_its_row(monkeypatch):
    def shout(step):
        yield Edit(((len(step) - 1, len(step), "! (n^2)"),), "frame")

    monkeypatch.setattr(rules, "RULES", (*rules.RULES, shout))
    chain = Chain("c", "c", "jsonl", "?", ("Nothing to see here.",) * 5)
    assert set(make("rules").negate(chain, 2, rng(0))) == {"Nothing to see here! (n^2)"}


def test_a_double_denial_is_never_offered():
    # Two flips of one parity would give the original claim again.
    step = "Thus, n is even."
    assert not any(
        re.search(r"\bnot? (?:never )?odd", candidate)
        for seed in range(40)
        for candidate in make("rules").negate(Chain("c", "c", "jsonl", "?", (step,) * 5), 2, rng(seed))
    )


# --- the rules on real chains ---------------------------------------------------------------------------------


def test_real_negations_are_valid_and_never_equivalent(items):
    for item in items:
        assert flaw(item.original_step, item.perturbed_step) is None
        before, after = statements(item.original_step), statements(item.perturbed_step)
        if len(before) == len(after) and item.edit_type in ("numeric_swap", "operator_swap"):
            assert not all(map(equivalent, before, after))


def test_real_negations_reach_every_type_but_the_rarest(champ):
    negator = make("rules", chains=champ)
    mix = Counter(replace_step(c, negator, rng(s, c.chain_id)).edit_type for s in range(2) for c in champ)
    share = {kind: mix[kind] / mix.total() for kind in TABLE6}
    # 120 draws: three standard deviations of a share of 0.3 are 0.125; a tenth of the steps gives another type.
    assert abs(share["numeric_swap"] - 130 / 450) < 0.16
    assert abs(share["operator_swap"] - 117 / 450) < 0.16
    assert abs(share["minor_rewrite"] - 161 / 450) < 0.16
    assert 0 < share["moderate_rewrite"] < 0.2
    assert share["major_rewrite"] < 0.06


def test_a_major_rewrite_is_a_step_of_another_problem(champ):
    negator, steps = make("rules", chains=champ), {step: c.problem_id for c in champ for step in c.steps}
    found = [
        (chain.problem_id, candidate)
        for seed in range(100)
        for chain in champ[:2]
        for candidate in [next(negator.negate(chain, 2, rng(seed)), "")]
        if candidate and edit_type(chain.steps[2], candidate) == "major_rewrite" and candidate in steps
    ]
    assert found
    assert all(steps[candidate] != problem for problem, candidate in found)


def test_most_middle_steps_can_be_negated(champ):
    negator = make("rules", chains=())
    places = [(chain, i) for chain in champ[:25] for i in middle_region(len(chain.steps))]
    unnegated = [1 for chain, i in places if next(negator.negate(chain, i, rng(0)), None) is None]
    assert len(unnegated) < 0.15 * len(places)


def test_another_process_writes_the_same_bytes(champ):
    code = """
from c2faith.dataset.chains import load_chains
from c2faith.dataset.negate import make
from c2faith.dataset.perturb import replace_step
from c2faith.records import dump, rng

chains = load_chains("champ")[:60]
negator = make("rules", chains=chains)
print(b"".join(dump(replace_step(c, negator, rng(0, "causality", c.chain_id))) for c in chains[:5]).decode())
"""
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    negator = make("rules", chains=champ)
    here = b"".join(dump(replace_step(c, negator, rng(0, "causality", c.chain_id))) for c in champ[:5])
    assert done.stdout.strip() == here.decode()


@pytest.mark.skipif(not SAMPLES, reason="C2FAITH_SAMPLES names no folder with PRM800K records")
def test_latex_chains_can_be_negated():
    chains = load_chains("prm800k", path=str(Path(SAMPLES) / "prm800k_sample.jsonl"))
    negator = make("rules", chains=chains)
    made = [replace_step(chain, negator, rng(0, chain.chain_id)) for chain in chains[:30]]
    assert all(item.perturbed_step.count("$") % 2 == item.original_step.count("$") % 2 for item in made)
    assert len({item.edit_type for item in made}) >= 3


# --- recorded, llm, make --------------------------------------------------------------------------------------


def test_recorded_negations_replay(champ, items, tmp_path):
    path = tmp_path / "causality.jsonl"
    write_jsonl(path, items)
    negator = make("recorded", recorded_path=path)
    for chain, item in zip(champ[:10], items, strict=False):
        replayed = replace_step(chain, negator, rng(99))
        assert (replayed.target, replayed.steps, replayed.edit_type) == (item.target, item.steps, item.edit_type)
        assert replayed.negator == "recorded"


def test_a_chain_that_was_not_recorded_has_no_negation(champ, items, tmp_path):
    write_jsonl(tmp_path / "causality.jsonl", items[:1])
    with pytest.raises(NoNegation):
        replace_step(champ[1], make("recorded", recorded_path=tmp_path / "causality.jsonl"), rng(0))


def test_a_recording_of_other_steps_is_refused(champ, items, tmp_path):
    write_jsonl(tmp_path / "causality.jsonl", items[:1])
    steps = tuple(f"{step} Indeed." for step in champ[0].steps)
    changed = Chain(champ[0].chain_id, champ[0].problem_id, "champ", champ[0].question, steps)
    with pytest.raises(InputError, match=r"causality\.jsonl: chain .* was recorded with another step"):
        replace_step(changed, make("recorded", recorded_path=tmp_path / "causality.jsonl"), rng(0))


def test_a_chain_recorded_twice_is_refused(items, tmp_path):
    write_jsonl(tmp_path / "causality.jsonl", [items[0], items[0]])
    with pytest.raises(InputError, match="recorded twice"):
        make("recorded", recorded_path=tmp_path / "causality.jsonl")


def test_the_model_sees_only_the_step_before():
    asked = []

    def complete(steps):
        asked.extend(steps)
        return [Reply(" So z=9. ") for _ in steps]

    chain = Chain("c", "c", "jsonl", "SECRET", ("So w=1.", "So x=2.", "So y=3.", "So z=4.", "So u=5."))
    item = replace_step(chain, make("llm", complete=complete), rng(0), alpha="0.8", beta="0.8")  # index 3 alone
    assert (item.perturbed_step, item.negator) == ("So z=9.", "llm")
    text = "".join(content for _, content in prompts.render_negation(*asked[0]))
    assert "So y=3." in text
    assert "So z=4." in text
    assert not any(hidden in text for hidden in ("SECRET", "So w=1.", "So x=2.", "So u=5."))


def test_cut_off_and_refused_samples_are_counted_and_asked_again():
    replies = iter([
        Reply("So z=", finish_reason="length"),
        Reply(None, error="content_filter"),
        Reply("So z=4."),
        Reply("So z=5."),
    ])  # fmt: skip
    negator = make("llm", complete=lambda steps: [next(replies) for _ in steps])
    chain = Chain("c", "c", "jsonl", "?", ("So y=3.", "So z=4."))
    assert replace_step(chain, negator, rng(0), alpha=1, beta=1).perturbed_step == "So z=5."
    assert negator.rejections == {"truncated": 1, "content_filter": 1, "unchanged": 1}


def test_a_model_that_never_negates_is_given_up():
    negator = make("llm", complete=lambda steps: [Reply("")] * len(steps))
    with pytest.raises(NoNegation):
        replace_step(Chain("c", "c", "jsonl", "?", ("a", "b")), negator, rng(0), alpha=1, beta=1)
    assert negator.rejections == {"empty": 4}


@pytest.mark.parametrize(
    ("name", "message"),
    [("rule", "unknown negator 'rule'"), ("recorded", "name it"), ("llm", "name the judge endpoint")],
)
def test_bad_negators_are_one_clear_line(name, message):
    with pytest.raises(InputError, match=message) as caught:
        make(name)
    assert "\n" not in str(caught.value)
