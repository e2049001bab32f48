"""What holds for every test: one torch thread, no network, a cache of its own, Hypothesis derandomised."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pathlib import Path

torch.set_num_threads(1)
settings.register_profile(
    "specaudit",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("specaudit")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep references out of the user's cache; the converted GGUF alone is shared, see `tests.smollm2`."""
    monkeypatch.setenv("SPECAUDIT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run the test in an empty folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
