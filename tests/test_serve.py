"""The API judge against a real server that means well: `transformers serve`, which ignores response_format."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest

from c2faith.judging import judges, prompts, replies, tasks, verdicts
from c2faith.judging.ask import ask
from c2faith.judging.judges.base import Query

pytestmark = pytest.mark.slow
START_S = 180
STEPS = ("Let x = 3, so 2x = 6.", "Then 2x + 1 = 8.")
QUESTION = "What is 2x + 1 for x = 3?"


@pytest.fixture(scope="module")
def server(smollm2_folder, tmp_path_factory):
    """(address, model name) of a server started on a free port."""
    if missing := [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]:
        pytest.skip(f"needs {', '.join(missing)}")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).with_name("transformers")), "serve", str(smollm2_folder)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--dtype", "float32"]
    log = tmp_path_factory.mktemp("serve") / "log"
    with log.open("w") as file:
        # One thread: several are far slower where other processes share the processors.
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment)
    try:
        deadline = time.monotonic() + START_S
        while not healthy(port):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-2000:]
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1", str(smollm2_folder)
    finally:
        process.terminate()
        process.wait()


def healthy(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as response:
            return response.status == 200
    except (urllib.error.URLError, OSError):
        return False


def query(task, target=None):
    messages = prompts.render(tasks.get(task).templates, QUESTION, STEPS, target=target)
    return Query(f"chain/{task}", task, messages, QUESTION, STEPS, target, "k" * 64)


def test_a_real_server_is_judged_with_from_start_to_verdict(server, tmp_path):
    url, model = server
    judge = judges.make(f"server/{model}", base_url=url, connections=2)
    judge.dialect.parameters["max_tokens"] = 8
    for task, target in (("detection", 1), ("localization", None)):
        asked = query(task, target)
        tally = ask(judge, [asked], tmp_path)[task]
        assert tally.pending == 0 and tally.usage["prompt_tokens"] > 50
        rows = list(replies.read(replies.journal_path(tmp_path, judge.judge_id, task)))
        assert all(row["error"] is None and row["text"] and row["mode"] == "json_schema" for row in rows)
        # A reply cut at 8 tokens is asked for once more with 32; whatever it then is, it is a status, not a guess.
        assert [row["usage"]["completion_tokens"] <= cap for row, cap in zip(rows, (8, 32), strict=False)]
        verdict = verdicts.read_reply(rows[-1], task, len(STEPS))
        assert verdict.status in {"ok", "parse_error", "schema_error", "length"}
        assert (verdict.value is None) == (verdict.status != "ok")
        calls = tally.calls
        assert ask(judge, [asked], tmp_path)[task].calls == calls


def test_a_model_it_does_not_serve_is_named(server, tmp_path):
    url, _ = server
    judge = judges.make("server/other", base_url=url)
    tally = ask(judge, [query("detection", 1)], tmp_path)["detection"]
    (row,) = replies.read(replies.journal_path(tmp_path, judge.judge_id, "detection"))
    assert tally.pending == 1 and "pinned to" in row["extra"]["message"] and row["extra"]["http_status"] == 400
