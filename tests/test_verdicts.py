"""The parser: every way a judge may answer, and every way it may not."""

import json
import timeit
from functools import partial

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
        # one comma too many, single quotes: what a Python literal says, which is the outer object
        ('{"steps": [{"index": 0, "score": 1}, {"index": 3, "score": 0},], "index": 4}', 4, ("literal",)),
        ("{'reasoning': 'quotes {\"index\": 2}', 'index': 3}", 3, ("literal",)),
        # the last complete answer, wherever it stands
        ('```json\n{"index": 1}\n```\nNo, wait: {"index": 3}', 3, ("prose",)),
        ('Format: {"index": <n>}\n```json\n{"index": 2}\n```\n{"index": 4}', 4, ("prose",)),
        ('{"index": 3} <think>was that right?', 3, ("think",)),
        ('<think>{"index": 1}</think>{"index": 2}<think>sure?</think>', 2, ("think",)),
        ('[THINK]{"index": 1}[/THINK] {"index": 0}', 0, ("think",)),
        ('<|channel|>analysis<|message|>{"index": 1}<|end|><|channel|>final<|message|>{"index": 2}', 2, ("think",)),
        ('{"reasoning": "a <think> tag", "index": 2}', 2, ()),
        ('[{"index": 2}]', 2, ()),
        ('{"index": 2}, since {x: x > 0} is not empty', 2, ("prose",)),
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
        # nothing inside an unreadable object is an answer, cut off or not
        ('{"reasoning": "he wrote "x" and {"index": 0} is the start", "index": 4}', "parse_error"),
        ('{"steps": [{"index": 0, "score": 1}, {"index": 3, "score": 0},], "ind', "parse_error"),
        ('{"reasoning": "he wrote "x" and {"index": 0} is the st', "parse_error"),
        ("{'reasoning': 'quotes {\"index\": 2}', 'ind", "parse_error"),
        ("{'index': 1, 'index': 2}", "parse_error"),
        # a draft is no answer
        ('{"index": 1} No: {"reasoning": "so it is "3"", "index": 3}', "parse_error"),
        ('{"index": 1} No: {"reasoning": "so', "parse_error"),
        ('<think>perhaps {"index": 1}', "parse_error"),
        ('<|channel|>analysis<|message|>{"index": 1}', "parse_error"),
        ('[{"index": 0, "score": 1}, {"index": 3, "score": 0}]', "schema_error"),
        ('{"answer": {"index": 2}}', "schema_error"),
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
        *(
            ({"text": '{"score": 0}', "finish_reason": reason}, Verdict(None, status))
            for reason, status in [
                *[(word, "length") for word in ("model_length", "MAX_TOKENS", "max_tokens")],
                *[(word, "api_error") for word in ("abort", "error", "a word of its own", {"type": "stop"}, 3)],
                ("SAFETY", "content_filter"),
            ]
        ),
        *(({"text": '{"score": 0}', "finish_reason": word}, Verdict(0, "ok")) for word in (None, "eos", "STOP")),
        ({"text": "", "extra": {"tool_arguments": '{"score": 0}'}}, Verdict(0, "ok", "", ("tool",))),
        (
            {"text": " ", "extra": {"reasoning_content": 'so {"score": 0}?'}},
            Verdict(None, "parse_error", 'so {"score": 0}?', ("reasoning_content",)),
        ),
        ({"text": "", "extra": {"reasoning_content": {"score": 1}}}, Verdict(1, "ok", "", ("reasoning_content",))),
        ({"text": '{"reasoning": "half \\ud800 pair", "score": 0}'}, Verdict(0, "ok", "half � pair")),
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


@pytest.mark.parametrize(
    "text",
    [
        "```json" + "\n" * 400_000,
        "<think>" * 100_000,
        '{"a":' * 100_000,
        '{"a} ' * 100_000,
        "{'a': " * 100_000,
        "[{" * 200_000,
        "\\[" * 400_000,
        '{"a": "\\frac{' * 100_000,
        "{ " * 200_000,
    ],
    ids=lambda text: text[:8],
)
def test_a_long_reply_takes_no_longer_than_its_length(text):
    calls = (partial(parse, said, "localization", 5) for said in (text[: len(text) // 4], text))
    quarter, whole = (min(timeit.repeat(call, number=1, repeat=3)) for call in calls)
    assert whole < 12 * quarter + 0.2, "four times the text, four times the time; sixteen if it were quadratic"
