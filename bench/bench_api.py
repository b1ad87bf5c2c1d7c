"""API judge: wall time and memory against a local server that answers after a fixed 200 ms.

In one run, at 64 and at 256 connections: a bare loop over the same SDK client, our judge with every attempt
journaled, and inspect_ai where it is installed. Our time must be at most 1.15 times the bare loop's; the ideal is
items × 0.2 s / connections. `python bench/bench_api.py [items]`.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from importlib.util import find_spec
from pathlib import Path

from c2faith.judging import answers
from c2faith.judging.ask import ask
from c2faith.judging.judges.base import Query
from c2faith.judging.judges.endpoint import Endpoint
from c2faith.judging.judges.openai_api import OpenAIJudge

ANSWER_S = 0.2
CONNECTIONS = (64, 256)
ALLOWED = 1.15
STEP = "The sum of the first n odd numbers is n squared, hence 1 + 3 + 5 + 7 = 16 and so on. "


def serve() -> None:
    """The server's process: answers every chat completion after `ANSWER_S`; prints its port."""
    from aiohttp import web

    reply = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "judge",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": json.dumps({"reasoning": STEP, "score": 1})},
            }
        ],
        "usage": {"prompt_tokens": 400, "completion_tokens": 40, "total_tokens": 440},
    }
    body = json.dumps(reply).encode()

    async def complete(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(ANSWER_S)
        return web.Response(body=body, content_type="application/json")

    async def run() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", complete)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.Event().wait()

    asyncio.run(run())


@contextmanager
def server() -> Iterator[str]:
    """The address of a server in a process of its own."""
    process = subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True)
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    finally:
        process.terminate()
        process.wait()


def queries(count: int) -> list[Query]:
    """Detection queries of about 400 tokens."""
    system = "You check one step of a solution. Answer with one JSON object. " * 8
    prompts = [(("system", system), ("user", f"{i}: {STEP * 12}")) for i in range(count)]
    return [Query(f"item-{i}", "detection", prompt, "", ("",), 0, f"{i:064x}") for i, prompt in enumerate(prompts)]


def bare(endpoint: Endpoint, items: list[Query], connections: int) -> float:
    """Seconds of a loop that does nothing but call the SDK."""
    schema = {"name": "verdict", "strict": True, "schema": answers.schema(answers.Detection)}
    form = {"type": "json_schema", "json_schema": schema}

    async def run() -> float:
        rest = iter(items)
        async with endpoint.async_client(connections, 60.0) as client:

            async def work() -> None:
                for query in rest:
                    messages = [{"role": role, "content": text} for role, text in query.messages]
                    await client.chat.completions.create(model="judge", messages=messages, response_format=form)

            start = time.perf_counter()
            await asyncio.gather(*[work() for _ in range(connections)])
            return time.perf_counter() - start

    return asyncio.run(run())


def ours(endpoint: Endpoint, items: list[Query], connections: int) -> float:
    """Seconds of the judging loop, journal included."""
    config = {"judge_id": "bench", "provider": "server", "model": "judge"}
    judge = OpenAIJudge(config, endpoint, connections=connections)
    # Progress lines go nowhere, so that they do not stand among the figures.
    with tempfile.TemporaryDirectory() as folder, redirect_stderr(io.StringIO()):
        start = time.perf_counter()
        tally = ask(judge, items, Path(folder))["detection"]
        spent = time.perf_counter() - start
    assert tally.finished == tally.calls == len(items), f"{tally.finished} finished in {tally.calls} calls"
    return spent


def inspect(endpoint: Endpoint, items: list[Query], connections: int) -> float:
    """Seconds of inspect_ai on the same items, its log written as it comes."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, GenerateConfig, ResponseSchema, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate
    from inspect_ai.util import json_schema
    from pydantic import BaseModel

    class Verdict(BaseModel):
        reasoning: str
        score: int

    form = ResponseSchema(name="verdict", json_schema=json_schema(Verdict), strict=True)
    config = GenerateConfig(max_connections=connections, response_schema=form)
    where = {"base_url": endpoint.base_url, "api_key": "none", "responses_api": False}
    model = get_model("openai/judge", config=config, **where)
    prompts = [
        [ChatMessageSystem(content=q.messages[0][1]), ChatMessageUser(content=q.messages[1][1])] for q in items
    ]
    samples = [Sample(input=prompt, target="1") for prompt in prompts]
    task = Task(dataset=samples, solver=[generate()], scorer=includes())
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        (log,) = eval(task, model=model, display="none", log_dir=folder, max_samples=connections)
        spent = time.perf_counter() - start
    assert log.status == "success", log.error
    return spent


def peak_mb() -> float:
    """Most memory this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(count: int) -> int:
    """Print the table; 1 if our ratio is above the allowed one."""
    logging.disable(logging.WARNING)
    runners: dict[str, Callable[[Endpoint, list[Query], int], float]] = {"bare": bare, "ours": ours}
    failed = False
    with server() as url:
        endpoint = Endpoint("server", url, "none")
        bare(endpoint, queries(64), 64)  # imports and first connections are not what is measured
        ours(endpoint, queries(count // 4), 64)
        fewer = peak_mb()
        ours(endpoint, queries(count), 64)
        print(f"memory: {peak_mb():.0f} MB, {peak_mb() - fewer:+.1f} MB from {count // 4} to {count} items")
        for connections in CONNECTIONS:
            items, ideal = queries(count), count * ANSWER_S / connections
            turns = {name: [run(endpoint, items, connections)] for name, run in runners.items()}
            for name, run in runners.items():  # the better of two each: the machine may be shared
                turns[name].append(run(endpoint, items, connections))
            if find_spec("inspect_ai"):
                turns["inspect_ai"] = [inspect(endpoint, items, connections)]
            seconds = {name: min(times) for name, times in turns.items()}
            for name, spent in seconds.items():
                ratios = f"{spent / ideal:.2f} × ideal, {spent / seconds['bare']:.2f} × bare"
                print(f"{count} items, {connections} connections, {name}: {spent:.2f} s, {ratios}", flush=True)
            failed |= seconds["ours"] > ALLOWED * seconds["bare"]
    print("above" if failed else "within", f"{ALLOWED} × bare")
    return int(failed)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 2000))
