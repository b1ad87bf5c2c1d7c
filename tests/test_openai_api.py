"""The API judge against a server that misbehaves, one kind of failure a test, through the real judging loop."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import signal
import threading
import time

import pytest
from tenacity import wait_fixed

from c2faith.judging import ask as asking
from c2faith.judging import replies, verdicts
from c2faith.judging.judges import openai_api
from c2faith.judging.judges.base import Query
from c2faith.judging.judges.endpoint import Endpoint
from c2faith.judging.judges.openai_api import OpenAIJudge
from c2faith.records import InputError
from faulty_server import Answer, Server, completion, error, verdict

KEY = "sk-very-secret-key"
PRICES = {"as_of": "2026-11-30", "input": 2, "cached_input": 0.5, "output": 8, "expected_output_tokens": 20}


def queries(count, task="detection", n_steps=5):
    system = ("system", "Answer with one JSON object.")
    return [
        Query(f"item-{i}", task, (system, ("user", f"number {i}")), "q", ("a",) * n_steps, 0, f"{i:064x}")
        for i in range(count)
    ]


def make(server, *, parameters=None, prices=None, model="judge", **settings):
    config = {"judge_id": "j", "provider": "server", "model": model, "parameters": parameters or {}}
    config |= {"prices": prices} if prices else {}
    settings = {"connections": 4, "attempts": 3, "backoff": wait_fixed(0.02), "timeout_s": 10} | settings
    return OpenAIJudge(config, Endpoint("server", server.url, KEY), **settings)


def ask(judge, folder, count=1, task="detection", **settings):
    """(tally, journal rows, statuses of the items that are finished)."""
    tally = asking.ask(judge, queries(count, task), folder, **settings)[task]
    return tally, *read(folder, task)


def read(folder, task="detection"):
    rows = list(replies.read(replies.journal_path(folder, "j", task)))
    final = {row["item_id"]: verdicts.read_reply(row, task, 5) for row in rows if replies.is_final(row)}
    return rows, final


def number(call):
    """Which item a call is about."""
    return int(call.body["messages"][-1]["content"].split()[-1])


def first_then(first, rest):
    """Each item's first call gets one answer, the later ones another."""
    seen = set()

    def behave(call):
        new = number(call) not in seen
        seen.add(number(call))
        return first if new else rest

    return behave


def test_a_good_server_is_asked_once_an_item(tmp_path):
    with Server() as server:
        tally, rows, final = ask(make(server), tmp_path, 9)
    assert (tally.finished, tally.calls, len(server.calls)) == (9, 9, 9)
    assert {v.status for v in final.values()} == {"ok"}
    row = rows[0]
    assert row["text"] == verdict() and row["finish_reason"] == "stop" and row["mode"] == "json_schema"
    assert row["usage"] == {"prompt_tokens": 100, "completion_tokens": 20}
    assert row["extra"]["request_id"].startswith("req-") and row["latency_s"] > 0
    schema = server.calls[0].body["response_format"]["json_schema"]
    assert schema["strict"] and schema["schema"]["required"] == ["reasoning", "score"]


def test_a_rate_limit_holds_all_workers_for_what_the_server_says(tmp_path):
    limited = []

    def behave(call):
        if call.number == 4:
            limited.append(call.at)
            return error(429, "Rate limit reached for requests", headers={"retry-after": "1"})
        return Answer(completion().body, delay_s=0.05)

    with Server(behave) as server:
        judge = make(server)
        said = []
        watch = threading.Timer(0.0, lambda: [said.append(judge.status()) or time.sleep(0.05) for _ in range(60)])
        watch.start()
        tally, rows, _ = ask(judge, tmp_path, 20)
        watch.join()
    assert tally.finished == 20 and tally.calls == 21
    assert any("waiting 1 s: rate limit" in text for text in said)
    after = [call.at - limited[0] for call in server.calls if call.at > limited[0] + 0.05]
    assert min(after) >= 1.0
    assert [row["extra"]["will_retry"] for row in rows if row["error"]] == [True]


def test_a_rate_limit_without_a_hint_is_met_with_backoff_and_few_calls(tmp_path):
    start = time.monotonic()

    def behave(call):
        return completion() if call.at - start > 1.5 else error(429, "Too many requests")

    with Server(behave) as server:
        tally, _, _ = ask(make(server, backoff=wait_fixed(0.4), connections=8), tmp_path, 8)
    assert tally.finished == 8
    # Within 1.5 s there is room for four bursts; staggered, each is fewer than the 8 that wait.
    assert len(server.calls) - 8 <= 24


def test_a_rate_limit_beyond_our_patience_ends_the_run_resumably(tmp_path):
    hour = error(429, "slow down", headers={"retry-after": "3600"})
    with Server(lambda call: hour) as server:
        with pytest.raises(InputError, match=r"rate limit lets nothing through.*later"):
            ask(make(server), tmp_path, 3)
        server.behave = lambda call: completion()
        assert ask(make(server), tmp_path, 3)[0].finished == 3


REFUSALS = [
    (error(429, "You exceeded your current quota", code="insufficient_quota", type="insufficient_quota"), "quota"),
    (error(401, f"Incorrect API key provided: {KEY}", code="invalid_api_key"), "key is refused"),
    (error(402, "Insufficient Balance"), "no credit"),
    (error(403, "Country not supported"), "access is denied"),
    (error(404, "The model `judge` does not exist", code="model_not_found"), "model or address is unknown"),
    (error(400, "Model Not Exist"), "model or address is unknown"),
]


@pytest.mark.parametrize(("answer", "words"), REFUSALS)
def test_a_refusal_for_good_costs_one_call_and_stops_in_one_line(tmp_path, answer, words):
    with Server(lambda call: answer) as server:
        with pytest.raises(InputError, match=words) as caught:
            ask(make(server, connections=16), tmp_path, 40)
        assert len(server.calls) == 1
        assert "\n" not in str(caught.value) and KEY not in str(caught.value)
        rows, final = read(tmp_path)
        assert not final and KEY not in json.dumps(rows)
        server.behave = lambda call: completion()
        assert ask(make(server), tmp_path, 40)[0].finished == 40


def test_quota_that_ends_in_the_middle_keeps_what_was_under_way(tmp_path):
    quota = error(429, "quota", code="insufficient_quota")

    def behave(call):
        return quota if call.number >= 10 else Answer(completion().body, delay_s=0.05 * (call.number % 4))

    with Server(behave) as server, pytest.raises(InputError, match="quota is used up"):
        ask(make(server), tmp_path, 40)
    assert len(read(tmp_path)[1]) == 10


def test_a_server_that_hangs_on_one_item_does_not_kill_the_run(tmp_path):
    def behave(call):
        return Answer(completion().body, delay_s=5.0 if number(call) == 2 else 0.0)

    with Server(behave) as server:
        tally, rows, final = ask(make(server, timeout_s=0.3, attempts=2), tmp_path, 6)
    assert (tally.finished, tally.pending) == (5, 1)
    lost = [row for row in rows if row["item_id"] == "item-2"]
    assert [row["error"] for row in lost] == ["api_error"] * 2
    assert [row["extra"].get("will_retry", False) for row in lost] == [True, False]
    assert lost[0]["extra"]["message"] == "timeout" and 0.25 < lost[0]["latency_s"] < 2
    assert "item-2" not in final


def test_a_call_that_takes_long_is_seen_while_it_lasts(tmp_path, monkeypatch):
    monkeypatch.setattr(openai_api, "SLOW_S", 0.2)
    said = []

    def behave(call):
        said.append(judge.status())
        return Answer(completion().body, delay_s=(0.0, 0.9, 0.4, 0.0)[number(call)])

    with Server(behave) as server:
        judge = make(server, connections=2)
        ask(judge, tmp_path, 4)
    assert said[0] == "" and any(text.startswith("2 calls under way, the oldest for ") for text in said)
    assert judge.status() == ""


BROKEN = [
    Answer(cut="before"),
    Answer(completion().body, cut="inside"),
    error(500, "internal"),
    error(503, "overloaded"),
    Answer(b"<html>bad gateway</html>", 502, {"content-type": "text/html"}),
    Answer(b"<html>welcome</html>", 200, {"content-type": "text/html"}),
    Answer({"error": {"message": "upstream failed", "code": 502}}),
    Answer({"choices": []}),
]


@pytest.mark.parametrize("broken", BROKEN, ids=range(len(BROKEN)))
def test_broken_replies_are_tried_again(tmp_path, broken):
    with Server(first_then(broken, completion())) as server:
        tally, rows, final = ask(make(server), tmp_path, 6)
    assert tally.finished == 6 and tally.calls == 12 and len(server.calls) == 12
    assert sorted(row["error"] or "" for row in rows) == [""] * 6 + ["api_error"] * 6
    assert {v.status for v in final.values()} == {"ok"}


def test_half_the_connections_closed(tmp_path):
    turn = itertools.count()
    with Server(lambda call: Answer(cut="before") if next(turn) % 2 else completion()) as server:
        tally, _, _ = ask(make(server, attempts=12, connections=8), tmp_path, 40)
    assert tally.finished == 40


def test_tries_are_capped_and_the_item_stays_pending(tmp_path):
    with Server(lambda call: error(500, "down") if number(call) == 1 else completion()) as server:
        tally, rows, _ = ask(make(server, attempts=3), tmp_path, 4)
        assert (tally.finished, tally.pending) == (3, 1)
        assert [row["attempt"] for row in rows if row["item_id"] == "item-1"] == [0, 1, 2]
        server.behave = lambda call: completion()
        calls = len(server.calls)
        tally, _, _ = ask(make(server), tmp_path, 4)
    assert tally.pending == 0 and len(server.calls) == calls + 1
    assert tally.calls == 7


def test_a_server_that_is_not_there_ends_the_run(tmp_path):
    with Server() as server:
        judge = make(server, attempts=2)
    with pytest.raises(InputError, match=r"10 queries in a row got no answer.*resumes"):
        ask(judge, tmp_path, 30)


def test_length_is_asked_once_more_with_a_larger_cap(tmp_path):
    def behave(call):
        return completion('{"reasoning": "so', "length") if call.body["max_tokens"] < 200 else completion()

    with Server(behave) as server:
        tally, rows, final = ask(make(server, parameters={"max_tokens": 50}), tmp_path)
    assert [call.body["max_tokens"] for call in server.calls] == [50, 200]
    assert final["item-0"].status == "ok" and tally.finished == 1
    assert rows[0]["finish_reason"] == "length" and rows[0]["usage"]["completion_tokens"] == 20


@pytest.mark.parametrize(("parameters", "calls"), [({"max_completion_tokens": 50}, 2), ({}, 1)])
def test_length_is_a_status_of_its_own(tmp_path, parameters, calls):
    with Server(lambda call: completion('{"reasoning": "so', "length")) as server:
        tally, rows, final = ask(make(server, parameters=parameters), tmp_path)
    assert len(server.calls) == calls and final["item-0"].status == "length"
    assert tally.usage["completion_tokens"] == 20 * calls and rows[-1]["text"]


AZURE_FILTER = error(
    400,
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    code="content_filter",
    param="prompt",
    innererror={"code": "ResponsibleAIPolicyViolation"},
)
NO_ANSWERS = [
    (AZURE_FILTER, "content_filter"),
    (completion(None, "content_filter"), "content_filter"),
    (completion(None, refusal="I can't help with that."), "refusal"),
    (completion("I will not judge this.", "refusal"), "refusal"),
    (error(400, "maximum context length is 8192 tokens", code="context_length_exceeded"), "length"),
]


@pytest.mark.parametrize(("answer", "status"), NO_ANSWERS, ids=range(len(NO_ANSWERS)))
def test_no_answer_is_final_and_never_retried(tmp_path, answer, status):
    with Server(lambda call: answer) as server:
        tally, rows, final = ask(make(server), tmp_path, 3)
    assert tally.finished == 3 and len(server.calls) == 3
    assert {v.status for v in final.values()} == {status} and {v.value for v in final.values()} == {None}
    assert rows[0]["extra"].get("refusal") == (
        None if status != "refusal" else rows[0]["text"] or "I can't help with that."
    )


def test_reasoning_content_is_read_and_tagged_without_another_call(tmp_path):
    with Server(lambda call: completion(None, reasoning_content=verdict(0))) as server:
        _, _, final = ask(make(server), tmp_path)
    assert len(server.calls) == 1
    assert final["item-0"].value == 0 and "reasoning_content" in final["item-0"].tags


@pytest.mark.parametrize("text", ['{"reasoning": "be', "   \n  "])
def test_unreadable_json_gets_one_fresh_sample(tmp_path, text):
    with Server(first_then(completion(text), completion())) as server:
        _, rows, final = ask(make(server), tmp_path / "a")
        assert final["item-0"].status == "ok" and rows[0]["extra"]["will_retry"]
        server.behave = lambda call: completion(text)
        tally, rows, final = ask(make(server), tmp_path / "b")
    assert final["item-0"].status == "parse_error" and tally.calls == 2 and tally.finished == 1
    assert [row["text"] for row in rows] == [text] * 2


def unsupported(name, advice=""):
    return error(
        400,
        f"Unsupported parameter: '{name}' is not supported with this model. {advice}",
        code="unsupported_parameter",
        param=name,
    )


def test_parameters_of_the_o_series_are_adapted_once_for_the_model(tmp_path, caplog):
    def behave(call):
        if "max_tokens" in call.body:
            return unsupported("max_tokens", "Use 'max_completion_tokens' instead.")
        if "temperature" in call.body:
            message = "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1)"
            return error(400, message, code="unsupported_value", param="temperature")
        return completion()

    with Server(behave) as server:
        judge = make(server, parameters={"temperature": 0.7, "max_tokens": 300}, connections=8)
        before = judge.fingerprint
        tally, rows, _ = ask(judge, tmp_path, 20)
    assert tally.finished == 20 and len(server.calls) == 22
    assert rows[-1]["extra"]["parameters"] == {"max_completion_tokens": 300}
    assert judge.fingerprint == before
    assert [r.message for r in caplog.records] == [
        "j: max_tokens is not accepted, max_completion_tokens is used",
        "j: temperature is not accepted and left out",
    ]


def test_a_cap_that_is_too_large_for_the_context_is_no_unsupported_parameter(tmp_path):
    message = "'max_tokens' is too large: 9000. This model's maximum context length is 8192 tokens"
    with Server(lambda call: error(400, message, param="max_tokens")) as server:
        _, _, final = ask(make(server, parameters={"max_tokens": 9000}), tmp_path)
    assert final["item-0"].status == "length" and len(server.calls) == 1


def test_the_ladder_of_response_formats_is_climbed_down_once_and_remembered(tmp_path):
    def behave(call):
        form = call.body.get("response_format", {}).get("type", "text")
        if form == "json_schema":
            return error(400, "This response_format type is unavailable now", code="invalid_request_error")
        if form == "json_object":
            return error(400, "'response_format.type' must be 'text'")
        return completion("Sure! ```json\n" + verdict(0) + "\n```")

    with Server(behave) as server:
        judge = make(server, connections=8)
        _, rows, final = ask(judge, tmp_path, 10)
        ask(judge, tmp_path, 10, task="coverage")
    assert len(server.calls) == 22
    assert [row["mode"] for row in rows if not row["error"]] == ["text"] * 10
    assert {v.value for v in final.values()} == {0}
    second = server.calls[1].body
    assert second["response_format"] == {"type": "json_object"}
    assert '"enum": [0, 1]' in second["messages"][0]["content"] and "JSON" in second["messages"][0]["content"]


@pytest.mark.parametrize(
    ("text", "value", "status"),
    [
        ("The step holds.\n" + verdict(1), 1, "ok"),
        ('<think>score 0? {"score": 0}</think>' + verdict(1), 1, "ok"),
        (verdict("1"), 1, "ok"),
        (verdict(1.0), 1, "ok"),
        (verdict(None), None, "schema_error"),
        (verdict(7), None, "schema_error"),
        ("the answer is 1", None, "parse_error"),
    ],
)
def test_a_server_that_ignores_the_format_is_read_as_it_comes(tmp_path, text, value, status):
    with Server(lambda call: completion(text)) as server:
        _, _, final = ask(make(server), tmp_path)
    assert (final["item-0"].value, final["item-0"].status) == (value, status)
    assert len(server.calls) == (2 if status == "parse_error" else 1)


@pytest.mark.parametrize(
    ("value", "read_as"),
    [("3", 3), (3.0, 3), ("Step 3", 3), (-1, -1), (5, "schema_error"), (None, "schema_error")],
)
def test_indices_are_coerced_but_never_shifted(tmp_path, value, read_as):
    with Server(lambda call: completion(verdict(value, "index"))) as server:
        ask(make(server), tmp_path, task="localization")
    found = read(tmp_path, "localization")[1]["item-0"]
    assert (found.value if found.status == "ok" else found.status) == read_as


def test_another_model_in_the_reply_is_recorded_and_warned_about_once(tmp_path, caplog):
    with Server(lambda call: completion(model="judge-2026-01-01")) as server:
        _, rows, _ = ask(make(server), tmp_path, 5)
    assert {row["model"] for row in rows} == {"judge-2026-01-01"}
    assert [r.message for r in caplog.records] == ["j: asked for model judge, answered by judge-2026-01-01"]


def test_one_rejected_item_stays_pending_and_the_others_go_on(tmp_path):
    odd = error(400, "the tokenizer cannot encode this text")
    with Server(lambda call: odd if number(call) == 3 else completion()) as server:
        tally, rows, _ = ask(make(server), tmp_path, 8)
    assert (tally.finished, tally.pending, len(server.calls)) == (7, 1, 8)
    assert [row["extra"]["http_status"] for row in rows if row["error"]] == [400]


def test_the_key_is_sent_and_written_nowhere(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    leak = error(400, f"bad request with key {KEY}")
    with Server(lambda call: leak if number(call) == 1 else completion()) as server:
        judge = make(server)
        ask(judge, tmp_path, 3)
        assert server.calls[0].headers["Authorization"] == f"Bearer {KEY}"
    written = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert "bad request with key [key]" in written
    for text in (written, caplog.text, repr(judge.endpoint), json.dumps(judge.config)):
        assert KEY not in text


def test_max_cost_is_not_passed_and_resumes(tmp_path):
    # 100 tokens in and 20 out cost 100 × 2e-6 + 20 × 8e-6 = 0.00036 dollars a call: 0.0072 for 20 of them.
    with Server() as server:
        tally, _, _ = ask(make(server, prices=PRICES), tmp_path, 20, max_cost=0.004)
        # A reserve is about 0.00047, so the last call goes out with at least 0.0035 spent, and so ends near 0.004.
        assert 0.0035 < tally.dollars <= 0.004
        assert tally.dollars == pytest.approx(0.00036 * tally.calls)
        judge = make(server, prices=PRICES)
        tally, _, _ = ask(judge, tmp_path, 20, max_cost=1.0)
    assert tally.finished == 20 and tally.calls == 20 == len(server.calls)
    assert tally.dollars == pytest.approx(0.0072)


def test_max_cost_without_prices_is_refused(tmp_path):
    with Server() as server, pytest.raises(InputError, match="no prices"):
        ask(make(server), tmp_path, 2, max_cost=1.0)


@pytest.fixture
def interruptible():
    """Ctrl-C as in a process of one's own: pytest's workers ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_waits_for_the_calls_under_way(tmp_path, interruptible):
    def behave(call):
        if call.number == 10:
            os.kill(os.getpid(), signal.SIGINT)
        return Answer(completion().body, delay_s=0.4)

    with Server(behave) as server:
        judge = make(server)
        with pytest.raises(KeyboardInterrupt):
            ask(judge, tmp_path, 200)
        assert 10 < len(server.calls) <= 14 and len(read(tmp_path)[1]) == len(server.calls)


def test_closing_the_generator_ends_its_thread():
    with Server(lambda call: Answer(completion().body, delay_s=0.1 if number(call) else 0)) as server:
        before = threading.active_count()
        replies = make(server).replies(queries(1000))
        next(replies)
        replies.close()
        assert threading.active_count() == before
        time.sleep(0.2)
        assert len(server.calls) <= 5  # the first, and at most one for each connection


def test_no_more_calls_than_connections_are_ahead_of_the_journal():
    with Server() as server:
        replies = make(server, connections=3).replies(queries(100))
        for taken in range(1, 20):
            next(replies)
            time.sleep(0.01)
            assert len(server.calls) <= taken + 3
        replies.close()


def test_it_works_under_a_running_event_loop(tmp_path):
    async def cell():
        return ask(make(server), tmp_path, 5)[0].finished

    with Server() as server:
        assert asyncio.run(cell()) == 5


def test_queries_may_be_a_generator_and_are_drawn_as_needed():
    drawn = itertools.count()

    def endless():
        while True:
            yield queries(next(drawn) + 1)[-1]

    with Server() as server:
        replies = make(server, connections=2).replies(endless())
        for _ in range(10):
            next(replies)
        replies.close()
    assert next(drawn) <= 13


def test_the_fingerprint_is_of_model_and_parameters_not_of_the_server():
    with Server() as one, Server() as two:
        assert make(one).fingerprint == make(two, prices=PRICES).fingerprint
        assert make(one).fingerprint != make(one, parameters={"temperature": 0}).fingerprint
        assert make(one).fingerprint != make(one, model="other").fingerprint


def test_azure_is_reached_by_deployment_with_its_own_headers(tmp_path):
    with Server() as server:
        config = {"judge_id": "j", "provider": "azure", "model": "my-gpt"}
        env = {"AZURE_API_KEY": KEY, "AZURE_API_BASE": server.url.removesuffix("/v1"), "AZURE_API_VERSION": "v"}
        judge = openai_api.from_config(config, env=env)
        assert ask(judge, tmp_path, 2)[0].finished == 2
        assert server.calls[0].headers["api-key"] == KEY and server.calls[0].body["model"] == "my-gpt"


@pytest.mark.parametrize("model", ["o4-mini", "my-o1-like-7b", "gpt-4.1", "r1"])
def test_nothing_is_guessed_from_a_models_name(tmp_path, model):
    with Server(lambda call: completion(model=model)) as server:
        ask(make(server, model=model, parameters={"temperature": 0.5, "max_tokens": 9}), tmp_path)
    (call,) = server.calls
    assert (call.body["temperature"], call.body["max_tokens"]) == (0.5, 9)
    assert call.body["response_format"]["type"] == "json_schema"
