"""The parser: every way a judge may answer, and every way it may not."""

import json

import pytest

from c2faith.judging import answers, tasks, verdicts
from c2faith.judging.verdicts import Verdict, parse
from c2faith.records import InputError


@pytest.mark.parametrize(
    ("text", "value", "tags"),
    [
        ('{"reasoning": "ok", "index": 3}', 3, ()),
        ('{"index": -1}', -1, ()),
        ('  \n{"index": 0}\n', 0, ()),
        ('<think>{"index": 1}? no.</think>{"index": 2}', 2, ("think",)),
        ('<think>a</think> b </think> {"index": 2}', 2, ("think",)),
        ('```json\n{"index": 2}\n```', 2, ("fenced",)),
        ('Sure!\n```\n{"index": 2}\n```\nHope this helps.', 2, ("fenced",)),
        ('First {"index": 1}, no: {"index": 4}', 4, ("prose",)),
        ('The answer is {"index": 2}. In {braces} and {}.', 2, ("prose",)),
        ('{"index": "3"}', 3, ("coerced",)),
        ('{"index": 3.0}', 3, ("coerced",)),
        ('{"index": "Step 3"}', 3, ("coerced",)),
        ('{"index": "-1"}', -1, ("coerced",)),
        ('{"reasoning": "\\sqrt{2} is \\frac{1}{2}", "index": 2}', 2, ("escaped",)),
        ('{"reasoning": "two\nlines", "index": 2}', 2, ()),
        ('{"reasoning": null, "index": 2, "confidence": 0.9}', 2, ()),
        ('{"reasoning": "half a pair: \\ud800", "index": 2}', 2, ()),
    ],
)
def test_an_answer_is_read(text, value, tags):
    verdict = parse(text, "localization", 5)
    assert (verdict.value, verdict.status, verdict.tags) == (value, "ok", tags)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (None, "parse_error"),
        ("", "parse_error"),
        ("   \n\t ", "parse_error"),
        ("I cannot say.", "parse_error"),
        ("3", "parse_error"),
        ('{"index": 2', "parse_error"),
        ('{"index": 1, "index": 2}', "parse_error"),
        ("{" * 50_000, "parse_error"),
        ('{"a":' * 5_000, "parse_error"),
        ('{"index": 5}', "schema_error"),
        ('{"index": -2}', "schema_error"),
        ('{"index": null}', "schema_error"),
        ('{"index": true}', "schema_error"),
        ('{"index": 2.5}', "schema_error"),
        ('{"index": NaN}', "schema_error"),
        ('{"index": 1e400}', "schema_error"),
        ('{"index": [2]}', "schema_error"),
        ('{"index": "two"}', "schema_error"),
        ('{"score": 1}', "schema_error"),
        ("{}", "schema_error"),
    ],
)
def test_no_answer_is_a_status_and_never_minus_one(text, status):
    verdict = parse(text, "localization", 5)
    assert (verdict.value, verdict.status) == (None, status)


def test_a_one_based_answer_is_not_shifted():
    assert parse('{"index": 5}', "localization", 6).value == 5


@pytest.mark.parametrize(
    ("task", "inside", "outside"),
    [("detection", (0, 1), (-1, 2)), ("coverage", (0, 4), (-1, 5)), ("localization", (-1, 6), (-2, 7))],
)
def test_bounds_belong_to_the_range(task, inside, outside):
    key = answers.key(tasks.get(task).answer)
    assert [parse(json.dumps({key: v}), task, 7).value for v in inside] == list(inside)
    assert [parse(json.dumps({key: v}), task, 7).status for v in outside] == ["schema_error"] * 2


def test_an_unknown_task_is_refused():
    with pytest.raises(InputError, match="unknown task"):
        parse("{}", "detektion", 3)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"text": '{"score": 0}', "finish_reason": "stop"}, Verdict(0, "ok")),
        ({"text": '{"score": 0}', "finish_reason": "length"}, Verdict(None, "length")),
        ({"text": None, "finish_reason": "content_filter"}, Verdict(None, "content_filter")),
        ({"text": None, "error": "content_filter"}, Verdict(None, "content_filter")),
        ({"text": None, "error": "refusal"}, Verdict(None, "refusal")),
        ({"text": None, "error": "api_error"}, Verdict(None, "api_error")),
        ({"text": None, "error": "something new"}, Verdict(None, "api_error")),
        (
            {"text": None, "extra": {"reasoning_content": '{"score": 1}'}},
            Verdict(1, "ok", "", ("reasoning_content",)),
        ),
    ],
)
def test_a_journal_row_is_read(row, expected):
    assert verdicts.read_reply(row, "detection", 4) == expected


def test_the_schema_admits_exactly_the_admissible_values():
    schema = answers.schema(answers.Localization, 3)
    assert schema["properties"]["index"]["enum"] == [-1, 0, 1, 2]
    assert schema["additionalProperties"] is False
    assert sorted(schema["required"]) == sorted(schema["properties"])


@pytest.mark.parametrize("task", [task.name for task in tasks.TASKS.values() if task.answer])
def test_the_schema_that_is_sent_is_strict_and_says_what_is_read(task):
    kind = tasks.get(task).answer
    schema, key = answers.schema(kind), answers.key(kind)
    # OpenAI's strict mode: an object whose keys are all required and no others allowed.
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert schema["required"] == list(schema["properties"]) == ["reasoning", key]
    assert schema["properties"]["reasoning"] == {"type": "string"}
    # An index has no bounds here: one schema serves chains of every length, and a server compiles it once.
    values = {} if key == "index" else {"enum": list(answers.admissible(kind, 3))}
    assert schema["properties"][key] == {"type": "integer", **values}
