"""The baselines' answers, task by task."""

from collections import Counter

import pytest

from c2faith.judging import judges
from c2faith.judging.judges.base import Query
from c2faith.judging.judges.computed import RULES, ComputedJudge
from c2faith.judging.verdicts import parse
from c2faith.records import InputError


def query(task, n_steps=7, item_id="i"):
    return Query(item_id, task, (), "?", tuple("abcdefghijklmnop"[:n_steps]), None, "hash")


def answer(rule, asked):
    ((_, reply),) = ComputedJudge("baseline", rule).replies([asked])
    found = parse(reply.text, asked.task, asked.n_steps)
    assert found.status == "ok"
    return found.value


@pytest.mark.parametrize(
    ("rule", "detection", "localization", "coverage"),
    [("always-flag", 0, 0, 0), ("never-flag", 1, -1, 4), ("middle", 0, 3, 2)],
)
def test_fixed_answers(rule, detection, localization, coverage):
    assert answer(rule, query("detection")) == detection
    assert answer(rule, query("localization")) == localization
    assert answer(rule, query("coverage")) == coverage


def test_the_middle_of_an_even_chain_is_the_later_one():
    assert answer("middle", query("localization", n_steps=6)) == 3


@pytest.mark.parametrize(("task", "n_answers"), [("detection", 2), ("localization", 8), ("coverage", 5)])
def test_uniform_gives_each_admissible_answer_its_chance(task, n_answers):
    queries = [query(task, item_id=f"item {i}") for i in range(1600)]
    replies = [reply for _, reply in ComputedJudge("baseline", "uniform").replies(queries)]
    counts = Counter(parse(reply.text, task, 7).value for reply in replies)
    expected = 1600 / n_answers
    assert len(counts) == n_answers
    assert all(abs(count - expected) < 5 * expected**0.5 for count in counts.values())
    assert replies[0].scores == (1 / n_answers,) * n_answers


def test_uniform_depends_on_the_items_name_alone():
    queries = [query("localization", item_id=f"item {i}") for i in range(20)]
    together = [reply.text for _, reply in ComputedJudge("baseline", "uniform").replies(queries)]
    apart = [next(ComputedJudge("baseline", "uniform").replies([asked]))[1].text for asked in reversed(queries)]
    assert together == apart[::-1]


def test_they_are_made_by_name():
    for rule in RULES:
        judge = judges.make(rule)
        assert (judge.judge_id, judge.fingerprint) == (rule, ComputedJudge("baseline", rule).fingerprint)
    assert len({ComputedJudge("baseline", rule).fingerprint for rule in RULES}) == len(RULES)


def test_an_unknown_rule_is_refused():
    with pytest.raises(InputError, match="unknown baseline 'oracle'"):
        ComputedJudge("baseline", "oracle")
