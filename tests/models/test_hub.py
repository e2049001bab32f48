"""Hub ids: the code path that downloads, served from a Hub cache made by hand, without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.models.tiny_models import save_model, tiny_model, tiny_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SCRIPT = """
from specaudit.core.errors import ModelError
from specaudit.models.loading import load_pair
from specaudit.models.options import LoadOptions

FAILING = [
    ("org/pickled", LoadOptions()),
    ("org/absent", LoadOptions()),
    ("org/tiny", LoadOptions(revision="v2")),
]
pair = load_pair("org/tiny", "org/tiny", options=LoadOptions(device="cpu", draft_revision="v1"))
print(pair.target.source, pair.target.digest == pair.draft.digest)
for name, options in FAILING:
    try:
        load_pair(name, None, options=options)
    except ModelError as error:
        print(error.where, "|", error.way_out)
"""


def _repository(cache: Path, name: str) -> Path:
    """Make an empty repository in a Hub cache, with one commit that is `main` and `v1`; return its snapshot."""
    folder = cache / f"models--org--{name}"
    for reference in ("main", "v1"):
        (folder / "refs").mkdir(parents=True, exist_ok=True)
        (folder / "refs" / reference).write_text(COMMIT)
    return folder / "snapshots" / COMMIT


def test_a_hub_id_is_loaded_and_failures_have_a_way_out(tmp_path: Path) -> None:
    save_model(_repository(tmp_path, "tiny"), tiny_model("llama"), tiny_tokenizer())
    pickled = _repository(tmp_path, "pickled")
    save_model(pickled, tiny_model("llama"), tiny_tokenizer())
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    # In a process of its own, because the Hub's library reads its environment when it is imported.
    environment = os.environ | {"HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    finished = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    loaded, pickled_line, absent_line, revision_line = finished.stdout.splitlines()
    assert loaded == "org/tiny True"
    assert pickled_line.startswith("org/pickled | convert the weights to safetensors")
    assert absent_line.startswith("org/absent | ")
    assert revision_line.startswith("org/tiny | ")
