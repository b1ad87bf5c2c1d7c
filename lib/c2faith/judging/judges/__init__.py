"""Judges by name: a YAML in `data/judges`, or ``provider/model`` given on the spot.

A further kind of judge is a module with ``from_config(config, **edge)`` and its entry in `PROVIDERS`.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from c2faith import paths
from c2faith.judging.judges.base import Judge
from c2faith.judging.judges.pricing import Prices
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
SERVERS = ("server", "vllm", "ollama", "llama.cpp")
"""What may stand before the name of a model that is reached by an address."""
OURS = ("messages", "model", "stream", "response_format")
"""Fields of a request that the library fills itself."""
_TYPES = ("dict", "list", "float", "[key]")  # of a JSON value, in a validation error's place


class Description(BaseModel):
    """What a YAML may say of a judge: JSON's values only, since it is hashed and kept beside the replies."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    judge_id: Annotated[str, AfterValidator(paths.judge_name)]
    provider: str = Field(min_length=1)
    model: str = Field(min_length=1)
    mode: str | None = None
    parameters: dict[str, JsonValue] | None = None
    prices: Prices | None = None
    tasks: list[str] = []
    note: str | None = None

    @model_validator(mode="after")
    def _leave_ours_alone(self) -> Self:
        if is_api(self.provider) and (taken := sorted({*OURS} & {*(self.parameters or {})})):
            raise ValueError(f"parameters.{taken[0]} is filled in by the library; leave it out")
        return self


def named() -> list[str]:
    """Names of the judges described in `data/judges`."""
    return sorted(path.stem for path in paths.JUDGES.glob("*.yaml"))


def is_api(provider: str) -> bool:
    """Whether a judge of this provider is a server that speaks the OpenAI protocol."""
    return PROVIDERS.get(provider, API) == API


def read_config(name: str, base_url: str | None = None) -> dict[str, Any]:
    """What a judge is: its YAML, or the little that ``provider/model`` says, or the name itself at `base_url`.

    Raises
    ------
    InputError
        For a name that is none of them, and for a YAML that is no judge.
    """
    if name in named():
        return _read_yaml(paths.JUDGES / f"{name}.yaml")
    if name.endswith((".yaml", ".yml")):
        return _read_yaml(Path(name))
    provider, slash, model = name.partition("/")
    if base_url and (not slash or provider not in (*PROVIDERS, *SERVERS)):
        # What stands before the slash is no provider but half of a model's name, as in "Qwen/Qwen3-8B".
        provider, model = "server", name
    if not model:
        known = ", ".join(named())
        raise InputError(f"unknown judge {name!r}: choose from {known}, or give provider/model, or BASE_URL")
    config = {"judge_id": paths.judge_name(judge_id(name)), "provider": provider, "model": model}
    if PROVIDERS.get(provider) == API:  # a named judge may list the model's prices
        listed = (read_config(other) for other in named())
        prices = (other["prices"] for other in listed if other["model"] == model and other.get("prices"))
        if found := next(prices, None):
            config["prices"] = found
    return config


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
    name
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
        known = ", ".join(PROVIDERS)
        raise InputError(f"judge {name!r}: unknown provider {provider!r}; choose {known}, or give BASE_URL")
    given = {key: value for key, value in edge.items() if value is not None}
    try:
        judge = importlib.import_module(module).from_config(config, **given)
    except ModuleNotFoundError as error:
        raise InputError(f"judge {name!r} needs the package {error.name}: make env-full installs it") from error
    judge.config = config
    return judge


def fingerprint(config: dict[str, Any]) -> str:
    """Hash of all in a judge's description that could change a reply; prices and notes cannot."""
    return sha256({key: config[key] for key in ("provider", "model", "mode", "parameters") if config.get(key)})


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        Description.model_validate(config)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8") from None
    except yaml.YAMLError as error:
        raise InputError(f"{path}: no YAML ({' '.join(str(error).split())})") from None
    except ValidationError as error:
        first = error.errors()[0]
        words = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            words = f"unknown key; a judge has {', '.join(Description.model_fields)}"
        elif "[key]" in first["loc"]:
            words = "a key must be a text; quote it"
        where = ".".join(str(part) for part in first["loc"] if part not in _TYPES)
        raise InputError(": ".join(filter(None, (str(path), where, words)))) from None
    return config
