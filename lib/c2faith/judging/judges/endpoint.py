"""Where an API judge is reached, and with which key: the edge at which environment variables and `.env` are read.

A key lives in an `Endpoint` and in the client made from it, nowhere else: it is not part of the repr, and
`redact` takes it out of whatever a server sends back before that is written or shown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dotenv import dotenv_values

from c2faith.judging.judges.base import Reply
from c2faith.records import InputError

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

AZURE_API_VERSION = "2025-04-01-preview"  # the first with structured output, o-series and batches
CONNECT_S = 20.0
NO_KEY = "none"  # what a server that wants no key is sent
_KEYS = {
    "openai": ("OPENAI_API_KEY",),
    "azure": ("AZURE_OPENAI_API_KEY", "AZURE_API_KEY"),
    "deepseek": ("DEEPSEEK_API_KEY",),
}
_ADDRESSES = {"openai": "https://api.openai.com/v1", "deepseek": "https://api.deepseek.com"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that speaks the OpenAI protocol.

    `provider` is ``openai``, ``azure``, ``deepseek``, or ``server`` for one given by its address; Azure's
    `base_url` is that of the resource, and only Azure has an `api_version`.
    """

    provider: str
    base_url: str
    api_key: str = field(repr=False)
    api_version: str = ""

    @property
    def host(self) -> str:
        """Host and port, for messages: an address may carry a password, its host does not."""
        parts = urlsplit(self.base_url)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)

    @property
    def batch_path(self) -> str:
        """The path a batch names as its endpoint."""
        return "/chat/completions" if self.provider == "azure" else "/v1/chat/completions"

    def redact(self, text: str) -> str:
        """The text without the key."""
        return text.replace(self.api_key, "[key]") if len(self.api_key) > len(NO_KEY) else text

    def redacted(self, reply: Reply) -> Reply:
        """The reply without the key, wherever a server may have put it."""
        extra = {
            name: self.redact(value) if isinstance(value, str) else value for name, value in reply.extra.items()
        }
        text = None if reply.text is None else self.redact(reply.text)
        return replace(reply, text=text, model=self.redact(reply.model), extra=extra)

    def async_client(self, connections: int, timeout_s: float) -> AsyncOpenAI:
        """A client that keeps `connections` connections open and never retries by itself.

        The SDK's aiohttp transport is used: at hundreds of connections it takes about half the processor time of
        its default one.
        """
        import httpx2
        import openai

        limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
        timeout = httpx2.Timeout(timeout_s, connect=CONNECT_S)
        http_client = openai.DefaultAioHttpClient(limits=limits, timeout=timeout)
        kind = openai.AsyncAzureOpenAI if self.provider == "azure" else openai.AsyncOpenAI
        return kind(**self._arguments(), http_client=http_client)

    def client(self, timeout_s: float) -> OpenAI:
        """A synchronous client, for the few calls that files and batches take."""
        import openai

        kind = openai.AzureOpenAI if self.provider == "azure" else openai.OpenAI
        return kind(**self._arguments(), timeout=timeout_s)

    def _arguments(self) -> dict[str, Any]:
        where = {"base_url": self.base_url}
        if self.provider == "azure":
            where = {"azure_endpoint": self.base_url, "api_version": self.api_version}
        return where | {"api_key": self.api_key, "max_retries": 0}


def environment(folder: Path | None = None) -> dict[str, str]:
    """The process's environment over the `.env` of `folder` (the working directory by default)."""
    kept = dotenv_values((folder or Path.cwd()) / ".env")
    return {name: value for name, value in kept.items() if value is not None} | dict(os.environ)


def find(provider: str, env: Mapping[str, str], base_url: str | None = None) -> Endpoint:
    """The endpoint of a provider, from the customary variables (of Azure's, both spellings are taken).

    A server given by its `base_url`, whatever its provider, gets ``OPENAI_API_KEY`` where that is set: hosted ones
    check a key.

    Raises
    ------
    InputError
        If a variable that is needed is not set, or the address is none.

    Examples
    --------
    >>> find("deepseek", {"DEEPSEEK_API_KEY": "sk-1"})
    Endpoint(provider='deepseek', base_url='https://api.deepseek.com', api_version='')
    """
    if base_url:
        key = env.get("OPENAI_API_KEY", "").strip()
        return Endpoint("server", _address("BASE_URL", base_url), _plain("OPENAI_API_KEY", key) or NO_KEY)
    if provider not in _KEYS:
        raise InputError(f"unknown provider {provider!r}: choose from {', '.join(_KEYS)}, or give BASE_URL")
    key = _first(env, *_KEYS[provider])
    if provider == "azure":
        address = _first(env, "AZURE_OPENAI_ENDPOINT", "AZURE_API_BASE")
        version = env.get("OPENAI_API_VERSION") or env.get("AZURE_API_VERSION") or AZURE_API_VERSION
        return Endpoint("azure", _address("AZURE_OPENAI_ENDPOINT", address), key, version)
    variable = f"{provider.upper()}_BASE_URL"
    return Endpoint(provider, _address(variable, env.get(variable) or _ADDRESSES[provider]), key)


def _first(env: Mapping[str, str], *names: str) -> str:
    for name in names:
        if value := env.get(name, "").strip():
            return _plain(name, value)
    raise InputError(f"{names[0]} is not set: put it into the environment or into .env")


def _plain(name: str, value: str) -> str:
    """The value, if it can stand in an HTTP header."""
    if not (value.isascii() and (value.isprintable() or not value)):
        raise InputError(f"{name}: holds characters that no key has; copy it anew")
    return value


def _address(variable: str, value: str) -> str:
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InputError(f"{variable}: no http address; it looks like http://localhost:8000/v1")
    return value.rstrip("/")
