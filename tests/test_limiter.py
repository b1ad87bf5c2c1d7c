"""The shared wait: what a server asks for, one burst counted once, patience, and how errors are read."""

import asyncio

import pytest
from tenacity import wait_exponential, wait_fixed

from c2faith.judging.judges.concurrency import BACKOFF, Limiter, backoff_s, pause
from c2faith.judging.judges.response import from_completion, from_error, read_usage, retry_after


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "34"}, 34.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40.0),  # 100 s after the epoch, 60 s are past
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after_in_every_form(headers, wait):
    assert retry_after(headers, now=60.0) == wait


def test_a_burst_of_refusals_is_counted_once(clock):
    limiter = Limiter(wait_exponential(multiplier=1), clock=clock)
    for _ in range(64):
        limiter.limited(None)
    assert limiter.waiting_s == 1.0  # 2⁰
    clock.now += 1.0
    limiter.limited(None)
    assert limiter.waiting_s == 2.0  # 2¹: the limit is still in force after the first wait
    clock.now += 2.0
    limiter.answered()
    limiter.limited(None)
    assert limiter.waiting_s == 1.0  # an answer between them makes it a new limit


def test_the_server_may_lengthen_a_wait_but_not_shorten_it(clock):
    limiter = Limiter(clock=clock)
    limiter.limited(30.0)
    limiter.limited(5.0)
    assert limiter.waiting_s == 30.0
    limiter.limited(60.0)
    assert limiter.waiting_s == 60.0


def test_patience_counts_from_the_last_answer(clock):
    limiter = Limiter(wait_fixed(50), patience_s=120, clock=clock)
    limiter.limited(None)
    assert not limiter.out_of_patience
    clock.now += 100
    limiter.limited(None)
    assert limiter.out_of_patience  # blocked since 100 and until 250
    limiter.answered()
    assert not limiter.out_of_patience


def test_backoff_grows_within_its_bounds_and_is_jittered():
    draws = [[backoff_s(BACKOFF, failures) for _ in range(200)] for failures in (1, 4, 20)]
    assert all(1 <= wait <= 60 for waits in draws for wait in waits)
    assert max(draws[0]) <= 1 < max(draws[1]) <= 8 < max(draws[2])
    assert len(set(draws[2])) > 100


def test_a_pause_ends_at_once_when_the_run_stops():
    async def run():
        stopping = asyncio.Event()
        assert await pause(0.0, stopping)
        asyncio.get_running_loop().call_later(0.01, stopping.set)
        assert not await pause(60.0, stopping)
        assert not await pause(0.0, stopping)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, {"error": {"message": "Rate limit reached for gpt-4.1 on tokens per min"}}, "rate_limit"),
        (429, {"error": {"message": "You exceeded your current quota, please check your plan"}}, "fatal"),
        (429, "<html>too many requests</html>", "rate_limit"),
        (400, {"error": {"message": "billing hard limit", "code": "billing_hard_limit_reached"}}, "fatal"),
        (400, {"error": "a bare text"}, "rejected"),
        (422, {"detail": [{"loc": ["body", "seed"], "msg": "extra fields not permitted"}]}, "rejected"),
        (408, None, "transient"),
        (500, None, "transient"),
        (529, {"error": {"message": "overloaded"}}, "transient"),
        (None, "connection reset", "transient"),
        (404, {"error": {"message": "DeploymentNotFound"}}, "fatal"),
    ],
)
def test_errors_are_told_apart(status, body, kind):
    found = from_error(status, body)
    assert (found.kind, found.reply.error, found.reply.text) == (kind, "api_error", None)


@pytest.mark.parametrize("body", [None, [], "text", {}, {"choices": None}, {"choices": [None]}, {"choices": [{}]}])
def test_what_is_no_completion_is_tried_again(body):
    assert from_completion(body).kind == "transient"


def test_content_may_come_in_parts():
    message = {"content": [{"type": "text", "text": '{"score"'}, {"type": "text", "text": ": 1}"}]}
    found = from_completion({"choices": [{"message": message, "finish_reason": "stop"}], "model": "m"})
    assert found.reply.text == '{"score": 1}'


def test_usage_of_every_provider_under_our_names():
    openai = {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "total_tokens": 14,
        "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    ours = {"prompt_tokens": 9, "completion_tokens": 5, "cached_tokens": 4, "reasoning_tokens": 3}
    assert read_usage(openai) == ours
    deepseek = {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "prompt_cache_hit_tokens": 4,
        "prompt_tokens_details": None,
    }
    assert read_usage(deepseek) == {
        name: ours[name] for name in ("prompt_tokens", "completion_tokens", "cached_tokens")
    }
    assert read_usage(None) == {} == read_usage("many")


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [{"message": {"content": 5}}]},
        {"choices": {"0": {"message": {"content": "a"}}}},
        {"choices": [{"message": {"content": {"a": 1}}}]},
    ],
)
def test_a_content_that_is_no_text_is_no_completion(body):
    assert from_completion(body).kind == "transient"


def test_what_a_lying_server_says_of_itself_is_left_out():
    body = {"choices": [{"message": {"content": "a"}}], "model": {"a": 1}}
    usage = {"prompt_tokens": -9, "completion_tokens": 2**70, "prompt_tokens_details": [1]}
    reply = from_completion(body | {"usage": usage}).reply
    assert (reply.text, reply.model, reply.usage) == ("a", "", {})
