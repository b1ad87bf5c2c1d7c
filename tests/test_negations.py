"""Negations from an API model: sampled as in the paper, many at once, paid once, forecast, and within a limit."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from c2faith import dataset
from c2faith.judging import judges, negations, replies
from c2faith.records import InputError, dump
from faulty_server import Server, completion, error

PRICES = {"as_of": "2026-11-30", "input": 2, "cached_input": 0.5, "output": 8}
CALL = 360e-6  # dollars: 100 tokens in at $2, 20 out at $8 a million


@pytest.fixture
def priced(monkeypatch):
    """A judge ``priced`` whose calls cost `CALL`."""

    def read_config(name, base_url=None):
        return {"judge_id": "priced", "provider": "server", "model": "judge", "prices": PRICES}

    monkeypatch.setattr(judges, "read_config", read_config)


def step_of(call):
    return call.body["messages"][-1]["content"].split("<step>\n")[1].split("\n</step>")[0]


def negated(call):
    """The step that was sent with another number at its end."""
    return completion(f"{step_of(call).rstrip('.')}7.")


def build(server, path, limit=6, **edge):
    write = negations.writer("priced", path, base_url=server.url, env={}, **edge)
    return dataset.build("synthetic", limit=limit, negator="llm", complete=write)


def test_the_negator_samples_as_the_paper_does_and_pays_once(tmp_path):
    path = tmp_path / "negations.jsonl"
    texts = [("So x = ", "length"), ("So x = 5.", "stop"), ("So x = 6.", "stop")]

    def session(server):
        write = negations.writer("openai/gpt", path, base_url=server.url, env={})
        return [reply for _ in range(3) for reply in write([("So y = 3.", "So x = 4.")])]

    with Server(lambda call: completion(*texts[call.number])) as server:
        found = session(server)
        assert [(reply.text, reply.finish_reason) for reply in found] == texts
        assert len(server.calls) == 3
        body = server.calls[0].body
        assert (body["temperature"], body["max_tokens"]) == (0.7, 100) and "response_format" not in body
        assert [reply.text for reply in session(server)] == [text for text, _ in texts]
        assert len(server.calls) == 3


def test_a_negator_without_an_answer_stops_instead_of_taking_another_step(tmp_path):
    with Server(lambda call: error(400, "cannot encode")) as server:
        write = negations.writer("openai/gpt", tmp_path / "negations.jsonl", base_url=server.url, env={})
        with pytest.raises(InputError, match=r"no negation came back \(cannot encode\)"):
            write([("", "So x = 4.")])
    with pytest.raises(InputError, match="asks an API model"):
        negations.writer("always-flag", tmp_path / "negations.jsonl", env={})


def test_a_round_is_asked_many_at_once_and_what_is_rejected_in_the_next_one(tmp_path, priced):
    def behave(call):
        bad = not call.number % 3
        return replace(completion(step_of(call)) if bad else negated(call), delay_s=0.2)

    with Server(behave) as server:
        built = build(server, tmp_path / "negations.jsonl", limit=16)
        # 16 first samples, a third of them unchanged, then a third of those that are asked for again …
        assert len(built.causality) == 16 and built.manifest["rejected_negations"] == {"unchanged": 8}
        assert len(server.calls) == 24
        begun = sorted(call.at for call in server.calls)
    # The first goes alone, the other 15 together.
    assert begun[15] - begun[1] < 0.15


def test_the_same_replies_give_the_same_items_however_the_calls_interleave(tmp_path, priced):
    def behave(call):
        # A function of the step and of how often it was asked: half of the first samples are no negation.
        asked[step_of(call)] = asked.get(step_of(call), 0) + 1
        bad = asked[step_of(call)] < 3 and len(step_of(call)) % 2
        answer = completion(step_of(call)) if bad else negated(call)
        return replace(answer, delay_s=random.uniform(0, 0.05))

    found = []
    for name, connections in (("one", 1), ("many", 16), ("again", 16)):
        asked = {}
        with Server(behave) as server:
            built = build(server, tmp_path / f"{name}.jsonl", limit=12, connections=connections)
        found.append((b"".join(map(dump, built.causality)), built.manifest["rejected_negations"]))
    assert found[0] == found[1] == found[2] and found[0][1]["unchanged"] > 3


def test_an_interrupted_build_resumes_and_asks_nothing_twice(tmp_path, priced):
    path = tmp_path / "negations.jsonl"
    refused = error(401, "no such key")
    with Server(lambda call: refused if call.number == 5 else negated(call)) as server:
        with pytest.raises(InputError, match="key is refused"):
            build(server, path, limit=12, connections=2)
        paid = {row["item_id"] for row in replies.read(path) if replies.is_final(row)}
        assert 4 <= len(paid) < 12
        assert len(build(server, path, limit=12).causality) == 12
    final = [row["item_id"] for row in replies.read(path) if replies.is_final(row)]
    assert len(final) == len(set(final)) == 12 and paid < set(final)


def test_a_build_is_forecast_before_its_first_call_and_counts_on(tmp_path, priced, capsys):
    path, said = tmp_path / "negations.jsonl", []

    def behave(call):
        said.append(capsys.readouterr().err)
        return negated(call)

    with Server(behave) as server:
        built = build(server, path)
        assert len(built.causality) == 6 == len(server.calls)
        # 6 replies of at most 100 tokens at $8 a million are $0.0048; the prompts of about 200 tokens come on top.
        assert said[0].startswith("priced negations: 6 items, about ") and "about 600 output tokens" in said[0]
        assert "forecast $0.01" in said[0] and said[0].count("\n") == 1
        assert "priced negations: 6/6" in capsys.readouterr().err
        again = build(server, path)
    assert again.causality == built.causality and len(server.calls) == 6
    assert "forecast" not in capsys.readouterr().err


def test_a_cost_limit_stops_in_one_line_and_a_larger_one_resumes(tmp_path, priced, capsys):
    path = tmp_path / "negations.jsonl"
    with Server(negated) as server:
        # A call reserves about 350 tokens in and its cap of 100 out: $0.0015. Two leave too little of $0.0023.
        with pytest.raises(
            InputError, match=r"MAX_COST=0\.0023 is reached \(\$0\.\d+ are spent.*resumes$"
        ) as caught:
            build(server, path, max_cost=0.0023)
        assert "\n" not in str(caught.value)
        paid = len(server.calls)
        assert 1 <= paid < 6 and paid * CALL <= 0.0023
        with pytest.raises(InputError, match="is reached"):
            build(server, path, max_cost=0.0023)
        assert len(server.calls) == paid
        capsys.readouterr()
        assert len(build(server, path, max_cost=1.0).causality) == 6
        assert f"priced negations: {6 - paid} items" in capsys.readouterr().err
    assert len(server.calls) == 6 == len(list(replies.read(path)))


def test_a_cost_limit_without_prices_is_refused_and_lets_go_of_the_journal(tmp_path):
    path = tmp_path / "negations.jsonl"
    edge = {"base_url": "http://localhost:1/v1", "env": {}}
    with pytest.raises(InputError, match="MAX_COST: judge my-model has no prices"):
        negations.writer("my-model", path, max_cost=1.0, **edge)
    negations.writer("my-model", path, **edge)
    with replies.Journal(path):
        pass
