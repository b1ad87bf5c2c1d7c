"""Judges by name: a YAML in `data/judges`, or ``provider/model`` given on the spot."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import yaml

from c2faith import paths
from c2faith.judging.judges.base import Judge
from c2faith.records import InputError, sha256

API = "c2faith.judging.judges.openai_api"
PROVIDERS = {
    "openai": API,
    "azure": API,
    "deepseek": API,
    "local": "c2faith.judging.judges.local",
    "symbolic": "c2faith.judging.judges.symbolic",
    "baseline": "c2faith.judging.judges.baselines",
    "cros": "c2faith.cros.judge",
}
"""The module of every kind of judge: its ``from_config(config, **edge)`` makes the judge of a description."""
SERVERS = ("server", "vllm", "ollama", "llama.cpp")
"""What may stand before the name of a model that is reached by an address."""


def is_api(provider: str) -> bool:
    """Whether a judge of this provider is a server that speaks the OpenAI protocol."""
    return PROVIDERS.get(provider, API) == API


def named() -> list[str]:
    """Names of the judges described in `data/judges`."""
    return sorted(path.stem for path in paths.JUDGES.glob("*.yaml"))


def read_config(name: str, base_url: str | None = None) -> dict[str, Any]:
    """What a judge is: its YAML, or the little that ``provider/model`` says, or the name itself at `base_url`.

    Raises
    ------
    InputError
        For a name that is none of them, and for a YAML that is no judge.
    """
    path = paths.JUDGES / f"{name}.yaml"
    if "/" not in name and path.exists():
        return _read_yaml(path)
    if name.endswith((".yaml", ".yml")):
        return _read_yaml(Path(name))
    provider, slash, model = name.partition("/")
    if base_url and (not slash or provider not in (*PROVIDERS, *SERVERS)):
        # What stands before the slash is no provider but half of a model's name, as in "Qwen/Qwen3-8B".
        provider, model = "server", name
    if not model:
        known = ", ".join(named())
        raise InputError(f"unknown judge {name!r}: choose from {known}, or give provider/model, or BASE_URL")
    return {
        "judge_id": paths.judge_name(judge_id(name)),
        "provider": provider,
        "model": model,
        **_listed_prices(provider, model),
    }


def judge_id(name: str) -> str:
    """A folder name for ``provider/model``.

    >>> judge_id("local/models/my judge")
    'local-models-my-judge'
    """
    return "-".join("".join(c if c.isalnum() or c in "._" else " " for c in name).split())


def make(name: str, **edge: Any) -> Judge:
    """The judge of that name.

    Parameters
    ----------
    name : str
        A name of `data/judges`, a path to such a YAML, or ``provider/model``: ``openai/…``, ``azure/<deployment>``,
        ``deepseek/…``, ``local/<hub id or folder>``; together with `base_url` a model of that server, under its
        own name or after ``server/``, ``vllm/`` …
    **edge
        What only this machine knows and no reply depends on: ``base_url``, ``connections``, ``batch``.
    """
    config = read_config(name, edge.get("base_url"))
    provider = config["provider"]
    module = PROVIDERS.get(provider, API if edge.get("base_url") else None)
    if module is None:
        raise InputError(
            f"judge {name!r}: unknown provider {provider!r}; choose {', '.join(PROVIDERS)}, or give BASE_URL"
        )
    given = {key: value for key, value in edge.items() if value is not None}
    try:
        judge = importlib.import_module(module).from_config(config, **given)
    except ModuleNotFoundError as error:
        raise InputError(f"judge {name!r} needs the package {error.name}: make env-full installs it") from error
    judge.config = config
    return judge


def fingerprint(config: dict[str, Any]) -> str:
    """Hash of all in a judge's description that could change a reply; prices and notes cannot."""
    pinned = {key: config[key] for key in ("provider", "model", "mode", "parameters") if config.get(key)}
    return sha256(pinned)


def _listed_prices(provider: str, model: str) -> dict[str, Any]:
    """The prices that a named judge lists for an API's model, under the key ``prices``; nothing if none does."""
    if PROVIDERS.get(provider) != API:
        return {}
    listed = (read_config(name) for name in named())
    found = [config["prices"] for config in listed if config["model"] == model and config.get("prices")]
    return {"prices": found[0]} if found else {}


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8") from None
    except yaml.YAMLError as error:
        raise InputError(f"{path}: no YAML ({' '.join(str(error).split())})") from None
    known = {"judge_id", "provider", "model", "mode", "parameters", "prices", "tasks", "note"}
    if not isinstance(config, dict) or not {"judge_id", "provider", "model"} <= config.keys():
        raise InputError(f"{path}: a judge needs judge_id, provider and model")
    if unknown := sorted(config.keys() - known):
        raise InputError(f"{path}: unknown key {unknown[0]!r}; a judge has {', '.join(sorted(known))}")
    for key in ("judge_id", "provider", "model"):
        if not isinstance(config[key], str) or not config[key]:
            raise InputError(f"{path}: {key} must be a text, not {config[key]!r}")
    paths.judge_name(config["judge_id"])
    if not isinstance(config.get("parameters") or {}, dict):
        raise InputError(f"{path}: parameters must be names with values")
    tasks = config.get("tasks", [])
    if not isinstance(tasks, list) or not all(isinstance(task, str) for task in tasks):
        raise InputError(f"{path}: tasks must be a list such as [detection, localization]")
    return config
