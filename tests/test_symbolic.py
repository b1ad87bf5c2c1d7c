"""The symbolic judge: it flags what is demonstrably wrong, and little else."""

import pytest

from c2faith.dataset.chains import load_chains
from c2faith.judging import judges
from c2faith.judging.judges.base import Query
from c2faith.judging.judges.computed import ComputedJudge, groundedness, objection
from c2faith.judging.verdicts import parse
from c2faith.records import InputError

STEPS = ("We have x+5=25.", "So x=20.", "Then 2x=40 and 3+4=8.", "So (x-1)^2=x^2-2x+1.")


def query(task, steps=STEPS, target=None, question="What is x?"):
    return Query("i", task, (), question, tuple(steps), target, "hash")


def verdict(asked):
    ((same, reply),) = ComputedJudge("symbolic", "algebra").replies([asked])
    assert same is asked
    found = parse(reply.text, asked.task, asked.n_steps)
    assert (found.status, found.tags) == ("ok", ())
    return found


@pytest.mark.parametrize(("target", "score"), [(0, 1), (1, 1), (2, 0)])
def test_detection_looks_at_the_target_only(target, score):
    found = verdict(query("detection", STEPS[: target + 1], target))
    assert found.value == score
    if score == 0:
        assert "3+4=8 is false" in found.reasoning


def test_detection_does_not_blame_a_step_for_one_before():
    assert verdict(query("detection", STEPS, 3)).value == 1


def test_detection_ignores_what_comes_after_the_target():
    assert verdict(query("detection", STEPS, 1)).value == 1


def test_localization_names_the_first_wrong_step():
    assert verdict(query("localization")).value == 2


def test_localization_of_a_clean_chain():
    assert verdict(query("localization", STEPS[:2])).value == -1


@pytest.mark.parametrize(
    "step",
    [
        "So 2+2=5.",
        r"So $\frac{1}{2} + \frac{1}{3} = \frac{2}{5}$.",
        "Thus, C(6, 3)=18.",
        "We have 7 | 85.",
        "We get 5!=100.",
        "So f=(x+1)^2-x^2=2x+2.",
        "We have n mod 2=7 mod 3=0.",
        "So 9<10<9.",
    ],
)
def test_what_is_flagged(step):
    assert objection([step]) is not None


@pytest.mark.parametrize(
    "step",
    [
        "So x=22.",
        "Let (x+1)^2=x^2.",
        "If 2+2=5, then we are done.",
        "We get 4 | 2, which is a contradiction.",
        "So a_n=2a_(n-1)=4a_(n-2).",
        "We cannot have 1=2.",
        "So P(2k)=2k*P(2k-2)=k.",
        "Let 1+2+...+n=5.",
        "No symbols here.",
        "",
    ],
)
def test_what_is_not(step):
    assert objection([step]) is None


def test_a_root_is_checked_against_the_last_equation_in_that_variable():
    assert objection(["We need x+5=25.", "So x=22."]) == "x=22 does not satisfy x+5=25."
    assert objection(["We need x+5=25.", "So x=20."]) is None
    assert objection(["We need x^2=16.", "So x=-4."]) is None
    assert objection(["We need y+5=25.", "So x=22."]) is None
    assert objection(["We need x+5=25.", "Now something else.", "So x=22."]) is None  # only one step back


def test_groundedness_by_hand():
    # Step 1 uses x, 2 (x known from the question); step 2 uses y, 2, 7 (2 known): 2 of 5.
    assert groundedness("Find x.", ["So x=2.", "So y=2+7."]) == 2 / 5
    assert groundedness("?", ["No symbols."]) == 1.0


def test_coverage_is_the_rounded_share():
    assert verdict(query("coverage", ["So x=2.", "So y=2+7."], question="Find x.")).value == 2  # round(4 · 0.4)


def test_few_false_alarms_on_experts_chains():
    chains = load_chains("champ")[:60]
    flagged = [c.chain_id for c in chains if any(objection(c.steps[: i + 1]) for i in range(len(c.steps)))]
    assert len(flagged) <= 3


def test_it_is_made_by_name():
    judge = judges.make("symbolic")
    assert (judge.judge_id, judge.tasks) == ("symbolic", ("detection", "localization", "coverage"))
    assert judge.fingerprint == ComputedJudge("symbolic", "algebra").fingerprint
    with pytest.raises(InputError, match="no 'base_url'"):
        judges.make("symbolic", base_url="http://localhost")
