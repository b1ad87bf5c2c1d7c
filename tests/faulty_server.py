"""A local server that misbehaves on demand, over real HTTP: what it does to each call is a function given to it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

VERDICTS = {"detection": "score", "localization": "index", "coverage": "score", "reference": "score"}


@dataclass(frozen=True)
class Call:
    """One request as the server saw it: its number from 0, headers, parsed body and when it came."""

    number: int
    headers: Mapping[str, str]
    body: dict[str, Any]
    at: float


@dataclass(frozen=True)
class Answer:
    """What goes back. `cut` drops the connection instead, before a byte or in the middle of the body."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    cut: str = ""


def verdict(value: Any = 1, key: str = "score") -> str:
    """The JSON text of a well-formed verdict."""
    return json.dumps({"reasoning": "because", key: value})


def completion(content: Any = ..., finish_reason: str = "stop", *, model: str = "judge", **message: Any) -> Answer:
    """A chat completion with this text (None for none), a well-formed verdict by default."""
    content = verdict() if content is ... else content
    return Answer(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": model,
            "choices": [
                {
                    "index": 0,
                    "finish_reason": finish_reason,
                    "message": {"role": "assistant", "content": content, **message},
                }
            ],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        }
    )


def error(status: int, message: str, *, headers: Mapping[str, str] | None = None, **fields: Any) -> Answer:
    """An error as OpenAI writes it."""
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **fields}}
    return Answer(body, status, headers or {})


Behave = Callable[[Call], Answer]


class Server:
    """Serves ``/v1/chat/completions`` (and Azure's path) from a thread; `calls` is what came in."""

    def __init__(self, behave: Behave = lambda call: completion()):
        self.behave = behave
        self.calls: list[Call] = []
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10), "the server did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set_result, None)
        self._thread.join(10)

    def routes(self, app: web.Application) -> None:
        """Add what is served."""
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_post("/openai/deployments/{deployment}/chat/completions", self._complete)

    def _serve(self) -> None:
        self._loop.run_until_complete(self._run())
        self._loop.close()

    async def _run(self) -> None:
        app = web.Application(client_max_size=64 << 20)
        self.routes(app)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
        await site.start()
        self.port = runner.addresses[0][1]
        self._end = self._loop.create_future()
        self._ready.set()
        await self._end
        await runner.cleanup()

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        call = Call(len(self.calls), request.headers, await request.json(), time.monotonic())
        self.calls.append(call)
        answer = self.behave(call)
        if answer.delay_s:
            await asyncio.sleep(answer.delay_s)
        if answer.cut == "before":
            request.transport.abort()
            return web.Response()
        raw = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        headers = {"content-type": "application/json", "x-request-id": f"req-{call.number}", **answer.headers}
        if answer.cut == "inside":
            response = web.StreamResponse(
                status=answer.status, headers={**headers, "content-length": str(len(raw))}
            )
            await response.prepare(request)
            await response.write(raw[: len(raw) // 2])
            request.transport.abort()
            return response
        return web.Response(status=answer.status, body=raw, headers=headers)
