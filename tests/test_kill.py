"""Kills, full disks, rivals and long waits: nothing is lost, nothing is answered twice, little is paid twice."""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from c2faith import dataset
from c2faith.judging import replies
from c2faith.judging.ask import ask, shard
from c2faith.judging.judges.endpoint import Endpoint
from c2faith.judging.judges.openai_api import OpenAIJudge
from faulty_server import Answer, Server, completion, error
from kill_child import PRELOAD, REFUSED, queries, run

ITEMS, KILLS, CONNECTIONS = 500, 20, 8
ANSWER_S = 0.02

MINUTE_S, SILENT_S, HINT_S = 60.0, 15.0, 10.0
CHAINS, WORKERS = 4, 8

# One worker runs a file's tests, in order: the minute of the last test passes while the others run.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("minute")]


@pytest.fixture(scope="module")
def minute(tmp_path_factory):
    """`make judge`, in a process of its own, of a server that refuses all calls of the first minute for their rate.

    It says how long to wait only after the first quarter of it.
    """
    home = tmp_path_factory.mktemp("minute")
    dataset.write(dataset.build("synthetic", limit=CHAINS, natural_limit=1), home / "data" / "runs" / "small")

    def behave(call):
        since = call.at - server.calls[0].at
        if since >= MINUTE_S:
            return completion()
        headers = {"retry-after": f"{HINT_S:.0f}"} if since > SILENT_S else {}
        return error(429, "Rate limit reached for requests", headers=headers)

    command = [sys.executable, "-m", "c2faith", "judge", "--run", "small", "--judge", "my-model"]
    command += ["--tasks", "detection", "--connections", str(WORKERS)]
    with Server(behave) as server, (home / "out").open("w") as out, (home / "err").open("w") as err:
        process = subprocess.Popen(
            [*command, "--base-url", server.url],
            stdout=out,
            stderr=err,
            env=os.environ | {"C2FAITH_HOME": str(home)},
        )
        yield SimpleNamespace(process=process, server=server, home=Path(home))
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def processes():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    return context


@pytest.fixture
def server():
    with Server(lambda call: Answer(completion().body, delay_s=ANSWER_S)) as running:
        yield running


def rows_of(folder):
    return list(replies.read(replies.journal_path(folder, "j", "detection")))


def test_twenty_kills_lose_nothing_and_ask_little_twice(processes, server, tmp_path):
    rng = np.random.default_rng(0)
    arguments = (server.url, str(tmp_path), ITEMS, CONNECTIONS)
    for _ in range(KILLS):
        child = processes.Process(target=run, args=arguments)
        child.start()
        until = len(server.calls) + int(rng.integers(1, 40))
        while len(server.calls) < until and child.is_alive():
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 2 * ANSWER_S))
        assert child.is_alive(), "the run ended before it was killed: the test shows nothing"
        child.kill()
        child.join()
    child = processes.Process(target=run, args=arguments)
    child.start()
    child.join()
    assert child.exitcode == 0
    finished = Counter(row["item_id"] for row in rows_of(tmp_path) if replies.is_final(row))
    assert len(finished) == ITEMS and set(finished.values()) == {1}
    assert ITEMS < len(server.calls) <= ITEMS + CONNECTIONS * KILLS
    asked = Counter(call.body["messages"][0]["content"] for call in server.calls)
    assert len(asked) == ITEMS


def test_a_full_disk_stops_the_run_with_what_was_finished_intact(processes, server, tmp_path):
    def child(limit):
        process = processes.Process(target=run, args=(server.url, str(tmp_path), 60, 4, limit))
        process.start()
        process.join()
        return process.exitcode

    assert child(9_000) == REFUSED
    path = replies.journal_path(tmp_path, "j", "detection")
    kept = path.read_bytes()
    assert 0 < len(kept) <= 9_000 and kept.endswith(b"\n")
    finished = {row["item_id"] for row in rows_of(tmp_path)}
    assert 0 < len(finished) < 60
    assert child(0) == 0
    assert path.read_bytes().startswith(kept)
    assert Counter(row["item_id"] for row in rows_of(tmp_path)) == {f"item-{i}": 1 for i in range(60)}


def test_a_second_process_on_one_journal_is_refused(processes, server, tmp_path):
    arguments = (server.url, str(tmp_path), 60, 2)
    first, second = (processes.Process(target=run, args=arguments) for _ in range(2))
    first.start()
    while not server.calls:
        time.sleep(0.001)
    second.start()
    second.join()
    first.join()
    assert (first.exitcode, second.exitcode) == (0, REFUSED)
    assert Counter(row["item_id"] for row in rows_of(tmp_path)) == {f"item-{i}": 1 for i in range(60)}


def test_shards_run_apart_and_merge_by_concatenation(server, tmp_path):

    config = {"judge_id": "j", "provider": "server", "model": "judge"}
    merged = tmp_path / "merged" / "replies" / "j" / "detection.jsonl"
    merged.parent.mkdir(parents=True)
    for part in ("1/3", "2/3", "3/3"):
        judge = OpenAIJudge(config, Endpoint("server", server.url, "none"), connections=4)
        folder = tmp_path / part.replace("/", "-")
        ask(judge, shard(queries(40), part), folder)
        with merged.open("ab") as file:
            file.write(replies.journal_path(folder, "j", "detection").read_bytes())
    calls = len(server.calls)
    judge = OpenAIJudge(config, Endpoint("server", server.url, "none"))
    tally = ask(judge, queries(40), tmp_path / "merged")["detection"]
    assert (tally.finished, tally.calls) == (40, 40) and len(server.calls) == calls == 40


def test_a_minute_of_rate_limits_is_waited_out_with_few_calls_and_words_why(minute):
    assert minute.process.wait(timeout=3 * MINUTE_S) == 0, (minute.home / "err").read_text()
    items = 2 * CHAINS
    assert (minute.home / "out").read_text().splitlines()[-1].startswith(f"detection: {items}/{items} finished")
    since = [call.at - minute.server.calls[0].at for call in minute.server.calls]
    refused = [at for at in since if at < MINUTE_S]
    rows = list(
        replies.read(replies.journal_path(minute.home / "data" / "runs" / "small", "my-model", "detection"))
    )
    assert Counter(row["error"] for row in rows) == {"api_error": len(refused), None: items}
    assert len({row["item_id"] for row in rows if replies.is_final(row)}) == items
    # No call while a wait that the server named is on, but for those that were under way when it began.
    named = [at for at in refused if at > SILENT_S]
    assert not [at for at in since for start in named if start + 1 < at < start + HINT_S]
    # Without a word from the server the waits grow, and a limit still in force is met by few: in simulations of
    # this very course 9 to 20 calls, at most 49. Eight workers that ask every second would have made 480.
    assert WORKERS / 2 <= len(refused) <= 50
    lines = (minute.home / "err").read_text().splitlines()
    waiting = [
        line for line in lines if re.search(rf"my-model detection: 0/{items}, .*waiting \d+ s: rate limit", line)
    ]
    assert len(waiting) >= 3
