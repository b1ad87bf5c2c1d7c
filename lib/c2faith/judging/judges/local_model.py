"""A causal language model loaded for judging: where it comes from, how it is named, how text becomes tokens."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from c2faith.judging.judges import smollm2
from c2faith.records import InputError

EDGE = 1 << 20  # bytes hashed at both ends of a weight file: training moves every tensor, so the ends tell


def identity(model: str) -> str:
    """What a fingerprint says of a model: its name, and of a folder the content (not where it lies)."""
    return content_hash(Path(model)) if is_folder(model) else model


def is_folder(model: str) -> bool:
    """Whether `model` names a folder saved by `save_pretrained`, not a hub id."""
    return (Path(model) / "config.json").is_file()


def content_hash(folder: Path) -> str:
    """Hex SHA-256 over the names, sizes and ends of a model folder's files."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as file:
            digest.update(file.read(EDGE))
            file.seek(max(size - EDGE, 0))
            digest.update(file.read(EDGE))
    return digest.hexdigest()


@dataclass(frozen=True)
class LocalModel:
    """A model in evaluation mode, its tokenizer, and the name that replies carry."""

    model: Any
    tokenizer: Any
    name: str

    @property
    def device(self) -> Any:
        return self.model.device

    @property
    def dtype(self) -> str:
        return str(self.model.dtype).removeprefix("torch.")

    @property
    def context(self) -> float:
        """Most tokens the model can read; infinite where its configuration sets no limit."""
        return self._limit("max_position_embeddings")

    @property
    def window(self) -> float:
        """How far back the model's shortest-sighted layers look, in tokens; infinite where all see everything."""
        return min(self._limit("sliding_window"), self._limit("attention_chunk_size"))

    def _limit(self, name: str) -> float:
        return getattr(self.model.config.get_text_config(), name, None) or float("inf")

    @cached_property
    def _specials(self) -> list[str]:
        return [token.content for token in self.tokenizer.added_tokens_decoder.values() if token.special]

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, as a model would write them."""
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def encode_chat(self, messages: Sequence[tuple[str, str]], **options: Any) -> list[int]:
        """The tokens of a conversation up to where the assistant begins.

        Tokens with a meaning to the chat template cannot come from the messages: where their spelling occurs, it
        is broken by a space. A template without a system role gets the system text before the first user's.
        """
        turns = [{"role": role, "content": self._harmless(content)} for role, content in messages]
        options |= {"tokenize": False, "add_generation_prompt": True}
        try:
            text = self.tokenizer.apply_chat_template(turns, **options)
        except Exception as error:
            if type(error).__name__ != "TemplateError" or turns[0]["role"] != "system":
                raise
            merged = {"role": "user", "content": f"{turns[0]['content']}\n\n{turns[1]['content']}"}
            text = self.tokenizer.apply_chat_template([merged, *turns[2:]], **options)
        return self.encode(text)

    def _harmless(self, content: str) -> str:
        for token in self._specials:
            content = content.replace(token, f"{token[:1]} {token[1:]}")
        return content


def load(model: str, *, dtype: str = "auto", device: str = "auto", revision: str | None = None) -> LocalModel:
    """Load `model`: ``smollm2-135m``, a hub id or a folder.

    Raises
    ------
    InputError
        If torch or transformers is missing, the model cannot be had, it has no chat template, or `dtype` is no
        torch dtype.
    """
    if not (find_spec("torch") and find_spec("transformers")):
        raise InputError("a local judge needs torch and transformers: pip install 'c2faith[local]'")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = str(smollm2.folder()) if model == smollm2.NAME else model
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
        spread = torch.cuda.device_count() > 1 and find_spec("accelerate") is not None
    else:
        spread = False
    torch_dtype = getattr(torch, _fast_dtype(device) if dtype == "auto" else dtype, None)
    if not isinstance(torch_dtype, torch.dtype):
        raise InputError(f"dtype {dtype!r} is unknown; choose auto, float32, bfloat16 or float16")
    options = {"dtype": torch_dtype, "revision": revision} | ({"device_map": "auto"} if spread else {})
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, revision=revision)
        loaded = AutoModelForCausalLM.from_pretrained(source, **options)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"model {model}: cannot be loaded ({reason}); name a model folder or a hub id") from error
    if tokenizer.chat_template is None:
        raise InputError(f"model {model}: has no chat template; choose a model tuned to follow instructions")
    if not spread:
        loaded = loaded.to(device)
    return LocalModel(loaded.eval(), tokenizer, _name(model, source, loaded))


def _name(model: str, source: str, loaded: Any) -> str:
    """The model with what pins it: the packaged file's hash, the folder's, or the hub's commit."""
    if model == smollm2.NAME:
        pin = json.loads((Path(source) / smollm2.SOURCE_FILE).read_text())["sha256"]
    elif is_folder(source):
        pin = content_hash(Path(source))
    else:
        pin = getattr(loaded.config, "_commit_hash", None) or "unknown"
    name = Path(source).resolve().name if is_folder(source) else model
    return f"{name}@{pin[:12]}"


def _fast_dtype(device: str) -> str:
    """bfloat16 where the hardware multiplies it: in software it is several times slower than float32."""
    if device != "cpu":
        return "bfloat16"
    flags: set[str] = set()
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                flags.update(line.split())
                break
    return "bfloat16" if flags & {"amx_bf16", "avx512_bf16", "bf16"} else "float32"
