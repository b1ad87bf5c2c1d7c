"""Money: hand-worked costs, forecasts that say how they were counted, a budget that is not passed."""

import math

import pytest

from c2faith.judging.judges import pricing
from c2faith.judging.judges.base import Query
from c2faith.judging.judges.pricing import Budget, Forecast, Prices, cost, forecast, prompt_tokens, summary

PRICES = Prices(as_of="2026-11-30", input=2, cached_input=0.5, output=8, batch=0.5, expected_output_tokens=100)
QUERY = Query("i", "detection", (("system", "a" * 70), ("user", "b" * 35)), "", (), 0, "k")


@pytest.fixture
def no_tiktoken(monkeypatch):
    monkeypatch.setattr(pricing, "encoding", lambda model: None)


class Words:
    """Stands in for tiktoken: a token a word."""

    def encode(self, text, disallowed_special):
        return text.split()


def test_cost_by_hand():
    usage = {"prompt_tokens": 1000, "cached_tokens": 400, "completion_tokens": 50}
    # 600 fresh at $2, 400 cached at $0.50 and 50 out at $8 a million: (1200 + 200 + 400) / 10⁶.
    assert cost(usage, PRICES) == pytest.approx(0.0018)
    assert cost(usage | {"batch_calls": 1}, PRICES) == pytest.approx(0.0009)
    assert cost(usage | {"reasoning_tokens": 40}, PRICES) == cost(usage, PRICES)  # they are part of the output
    assert cost({}, PRICES) == 0 == cost(usage, None)


def test_tokens_are_estimated_where_they_cannot_be_counted(no_tiktoken):
    # 70 / 3.5 + 35 / 3.5 = 30 for the texts, 4 for each message and 3 for the prompt.
    assert prompt_tokens(QUERY.messages, "any") == (41, False)


def test_tokens_are_counted_where_the_encoding_is_there(monkeypatch):
    monkeypatch.setattr(pricing, "encoding", lambda model: Words())
    assert prompt_tokens([("system", "one two"), ("user", "three")], "gpt-4.1") == (3 + 11, True)


def test_a_model_that_tiktoken_does_not_know_is_estimated():
    assert pricing.encoding("some-local-model") is None


def test_an_encoding_that_cannot_be_fetched_is_given_up_in_time(monkeypatch):
    import tiktoken

    def never(name):
        pricing.threading.Event().wait(5)

    monkeypatch.setattr(tiktoken, "get_encoding", never)
    monkeypatch.setattr(pricing, "TIKTOKEN_WAIT_S", 0.05)
    pricing.encoding.cache_clear()
    assert pricing.encoding("gpt-4.1") is None
    pricing.encoding.cache_clear()


def test_forecast_by_hand(no_tiktoken):
    found = forecast([QUERY] * 10, "any", PRICES)
    # 10 × 41 in at $2 and 10 × 100 out at $8 a million.
    assert found == Forecast(10, 410, False, 1000, pytest.approx(0.00882))
    assert forecast([QUERY] * 10, "any", PRICES, batch=True).dollars == pytest.approx(0.00441)
    assert forecast([QUERY], "any", None).dollars is None
    assert "estimated" in found.line() and "no forecast" in forecast([QUERY], "any", None).line()


def test_a_budget_is_never_passed_by_calls_within_their_reserve():
    budget = Budget(0.02, PRICES)
    calls = 0
    while (amount := budget.reserve(QUERY)) is not None:
        budget.settle(amount, {"prompt_tokens": 40, "completion_tokens": 150})
        calls += 1
    # A call costs 40 × 2e-6 + 150 × 8e-6 = 0.00128; its reserve is 85 × 2e-6 + 200 × 8e-6 = 0.00177.
    assert calls == 15 and budget.spent == pytest.approx(15 * 0.00128)
    assert budget.under_way == 0


def test_reserves_of_calls_under_way_count_too():
    budget = Budget(0.004, PRICES)
    amounts = [budget.reserve(QUERY) for _ in range(3)]
    assert None not in amounts[:2] and amounts[2] is None


def test_a_budget_learns_from_long_replies_and_trusts_a_cap():
    budget = Budget(1.0, PRICES)
    first = budget.reserve(QUERY)
    budget.settle(first, {"completion_tokens": 5000})
    assert budget.reserve(QUERY) > 20 * first
    assert budget.reserve(QUERY, cap=10) == pytest.approx(85 * 2e-6 + 10 * 8e-6)


def row(item, latency, error=None, **usage):
    return {"item_id": item, "prompt_sha256": "k", "latency_s": latency, "error": error, "usage": usage}


def test_summary_by_hand():
    rows = [
        row("a", 9.0, "api_error"),
        row("a", 1.0, prompt_tokens=100, cached_tokens=40, completion_tokens=10, reasoning_tokens=4),
        row("b", 3.0, prompt_tokens=100, completion_tokens=10),
    ]
    found = summary(rows, PRICES)
    assert (found["items"], found["calls"], found["retries"]) == (2, 3, 1)
    assert (found["tokens_in"], found["cached_tokens"]) == (200, 40)
    assert (found["tokens_out"], found["reasoning_tokens"]) == (20, 4)
    # 160 fresh at $2, 40 cached at $0.50, 20 out at $8; the median of 1 and 3 s, and 1 + 0.95 × 2.
    assert found["dollars"] == pytest.approx((320 + 20 + 160) / 1e6)
    assert (found["p50_s"], found["p95_s"]) == (pytest.approx(2.0), pytest.approx(2.9))


def test_summary_of_nothing_is_nan_where_undefined():
    found = summary([])
    assert found["calls"] == 0 and math.isnan(found["dollars"]) and math.isnan(found["p50_s"])
