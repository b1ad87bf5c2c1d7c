"""A run's judging as `make judge` does it: forecast, every task, one budget, batches side by side."""

from __future__ import annotations

import pytest

from c2faith import dataset, paths
from c2faith.judging import replies
from c2faith.judging.ask import ask_run
from c2faith.records import InputError
from faulty_server import Server, completion, verdict
from test_batch_api import BatchServer

CALL = 360e-6  # dollars: 100 tokens in at $2, 20 out at $8 a million
PRICED = """
judge_id: priced
provider: server
model: judge
prices: {as_of: 2026-11-30, input: 2, cached_input: 0.5, output: 8, batch: 0.5, expected_output_tokens: 20}
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of two chains, so 4 items of detection and 10 of coverage, and a judge with prices."""
    monkeypatch.setenv("C2FAITH_HOME", str(tmp_path))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "priced.yaml").write_text(PRICED)
    built = dataset.build("synthetic", limit=2, natural_limit=1)
    dataset.write(built, paths.run_dir("small"))
    return tmp_path


def answer(call):
    """A verdict under the key that the schema in the request names."""
    return completion(verdict(1, call.body["response_format"]["json_schema"]["schema"]["required"][-1]))


def test_a_servers_model_is_asked_every_task_once_under_its_own_name(run):
    said = []
    with Server(answer) as server:

        def announce(line):
            said.append((line, len(server.calls)))

        tallies = ask_run("small", "my-model", base_url=server.url, announce=announce)
        calls = len(server.calls)
        assert {call.body["model"] for call in server.calls} == {"my-model"}
        ask_run("small", "my-model", base_url=server.url, announce=announce)
        assert len(server.calls) == calls == sum(tally.items for tally in tallies.values())
    assert list(tallies) == ["detection", "localization", "coverage"]
    assert all(tally.pending == 0 for tally in tallies.values())
    assert replies.journal_path(paths.run_dir("small"), "my-model", "coverage").exists()
    assert said[0][0].startswith(f"my-model: {calls} items, about ") and said[0][1] == 0
    assert said[0][0].endswith("no prices, so no forecast") and said[1][0].startswith("my-model: 0 items")


def test_max_cost_is_of_all_tasks_and_resumes_whichever_was_asked_first(run):
    judge, edge = str(run / "priced.yaml"), {"announce": str}
    with Server(answer) as server:
        edge["base_url"] = server.url
        first = ask_run("small", judge, ["coverage"], **edge)["coverage"]
        assert first.dollars == pytest.approx(10 * CALL)
        # What coverage cost counts, though detection comes before it: less than a call is left of $0.004.
        tallies = ask_run("small", judge, max_cost=0.004, **edge)
        assert [tally.calls for tally in tallies.values()] == [0, 0, 10]
        tallies = ask_run("small", judge, max_cost=1.0, **edge)
    assert [tally.pending for tally in tallies.values()] == [0, 0, 0]


def test_batches_of_all_tasks_are_under_way_together(run):
    with BatchServer(answer, looks=1) as server:
        tallies = ask_run(
            "small", str(run / "priced.yaml"), batch=True, max_cost=1.0, base_url=server.url, announce=str
        )
    assert [tally.pending for tally in tallies.values()] == [0, 0, 0]
    assert server.log[:6] == ["files.create", "batches.create"] * 3 and len(server.batches) == 3
    dollars = sum(tally.dollars for tally in tallies.values())
    assert dollars == pytest.approx(len(server.calls) * CALL / 2)


def test_an_unknown_task_is_refused_before_the_first_call(run):
    with Server() as server, pytest.raises(InputError, match="unknown task 'detektion'"):
        ask_run("small", "my-model", ["detektion"], base_url=server.url, announce=str)
    assert not server.calls
