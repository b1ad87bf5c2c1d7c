"""A judging run in a process of its own, to be killed: imports nothing that it does not need."""

from __future__ import annotations

import resource
import signal
import sys
from pathlib import Path

from c2faith.judging.ask import ask
from c2faith.judging.judges.base import Query
from c2faith.judging.judges.endpoint import Endpoint
from c2faith.judging.judges.openai_api import OpenAIJudge
from c2faith.records import InputError

PRELOAD = [
    "c2faith.judging.ask",
    "c2faith.judging.judges.openai_api",
    "openai.resources.chat.completions",
    "openai._vendor.httpx_aiohttp",
    "openai.lib._client_auth",
]
REFUSED = 3


def queries(count: int) -> list[Query]:
    """Distinct detection queries."""
    return [
        Query(f"item-{i}", "detection", (("user", f"number {i}"),), "q", ("a",), 0, f"{i:064x}")
        for i in range(count)
    ]


def run(url: str, folder: str, count: int, connections: int, file_limit: int = 0) -> None:
    """Judge `count` items; exit code `REFUSED` for bad input. `file_limit` bytes stand for a full disk."""
    if file_limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
    config = {"judge_id": "j", "provider": "server", "model": "judge"}
    judge = OpenAIJudge(config, Endpoint("server", url, "none"), connections=connections)
    try:
        ask(judge, queries(count), Path(folder))
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(REFUSED)
