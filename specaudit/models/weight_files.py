"""Which files of a model directory hold its weights, and whether it is safe to open them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path

PICKLED = ("*.bin", "*.pt", "*.pth")
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
)

ALLOW_PICKLE = "convert the weights to safetensors, or pass --allow-pickle if you trust whoever made them"


def check_model_directory(folder: Path, *, given: str, allow_pickle: bool) -> None:
    """Refuse a directory that is not a model, or whose weights are pickles, which can run code when loaded.

    Raises:
        ModelError: no `config.json`, no weights, or nothing but pickled weights and not `allow_pickle`.
    """
    if not (folder / "config.json").is_file():
        gguf = sorted(folder.glob("*.gguf"))
        raise ModelError(
            "not a model directory: no config.json",
            where=given,
            way_out=f"give the file: '{gguf[0]}'" if gguf else "give a directory written by save_pretrained",
        )
    if any(folder.glob("*.safetensors")):
        return
    pickled = sorted(path.name for pattern in PICKLED for path in folder.glob(pattern))
    if not pickled:
        raise ModelError("no weights", where=given, way_out="add the .safetensors files")
    if not allow_pickle:
        raise ModelError(f"the weights are pickled ({pickled[0]})", where=given, way_out=ALLOW_PICKLE)


def has_tokenizer(folder: Path) -> bool:
    """Say whether a model directory holds any of the files from which a tokenizer is made."""
    return any((folder / name).is_file() for name in TOKENIZER_FILES)
