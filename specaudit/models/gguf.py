"""GGUF files: converted once, then loaded like any model directory.

transformers can read a GGUF file, but dequantises it anew each time, which takes longer than a small audit. So the
result is kept as float32 safetensors in the cache. float32 holds every dequantised weight exactly, which the half types
do not; it is also what `--dtype auto` then means for such a model.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

from specaudit.cache_folder import cache_root
from specaudit.core.errors import ModelError
from specaudit.models.releases import RELEASE, dtype_argument
from specaudit.models.restraint import quiet_transformers

CONVERSION = 1
"""Number of this way of converting; to be raised when its result changes."""


def converted_gguf(file: Path) -> Path:
    """Return the directory with the model and tokenizer of a GGUF file, converting it unless the cache has it.

    A conversion is named by the file's content and the versions that took part. It appears in the cache complete or not
    at all, so one that was interrupted, or that another process is making, is never used.

    Raises:
        ModelError: a package is missing, or the file cannot be read or converted.
    """
    _check_packages(file)
    folder = cache_root() / "gguf" / _conversion_name(file)
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="partial-", dir=folder.parent) as partial:
            content = Path(partial) / "content"
            with quiet_transformers():
                _convert(file, content)
            _publish(content, folder)
    except Exception as error:  # readers and transformers raise whatever they like; a full disk is an OSError
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ModelError(
            f"cannot convert the GGUF file: {reason}",
            where=str(file),
            way_out=f"give a complete GGUF file of an architecture that transformers {transformers.__version__} reads;"
            f" the conversion needs space in {folder.parent} (SPECAUDIT_CACHE moves it)",
        ) from error
    return folder


def _check_packages(file: Path) -> None:
    if find_spec("gguf") is None:
        raise ModelError(
            "reading a GGUF file needs the package gguf", where=str(file), way_out="pip install specaudit[gguf]"
        )
    if RELEASE < (5, 0) and find_spec("accelerate") is None:
        raise ModelError(
            f"transformers {transformers.__version__} needs the package accelerate to read a GGUF file",
            where=str(file),
            way_out="pip install accelerate, or transformers 5, which does without",
        )


def _conversion_name(file: Path) -> str:
    with file.open("rb") as stream:
        content = hashlib.file_digest(stream, "sha256").hexdigest()
    makers = f"{content} transformers {transformers.__version__} gguf {version('gguf')} conversion {CONVERSION}"
    return hashlib.sha256(makers.encode()).hexdigest()


def _convert(file: Path, folder: Path) -> None:
    """Write the model and tokenizer of `file` to `folder` as transformers saves them."""
    arguments: dict[str, Any] = {"gguf_file": file.name, **dtype_argument(torch.float32)}
    model: Any = AutoModelForCausalLM.from_pretrained(str(file.parent), **arguments)
    # What was read counts as quantised, although it no longer is, and refuses to be saved: move it to a plain model.
    config = model.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    with torch.device("meta"):
        plain = type(model)(config)
    plain.load_state_dict(model.state_dict(), assign=True)
    plain.tie_weights()
    plain.generation_config = model.generation_config
    plain.save_pretrained(folder, safe_serialization=True)
    _tokenizer(file).save_pretrained(folder)
    # transformers 4 takes the GGUF file for a sentencepiece model and copies it; tokenizer.json is all that is needed.
    (folder / "tokenizer.model").unlink(missing_ok=True)


def _tokenizer(file: Path) -> Any:
    """Return the tokenizer of a GGUF file, with the special tokens that the file names.

    transformers 4 takes them from the class that it happens to choose: for SmolLM2 the wrong EOS, no padding, and a BOS
    in front of everything.
    """
    from gguf import GGUFReader

    tokenizer: Any = AutoTokenizer.from_pretrained(str(file.parent), gguf_file=file.name)
    fields = GGUFReader(file).fields
    for role, key in {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}.items():
        field = fields.get(f"tokenizer.ggml.{key}_token_id")
        if field is not None:
            setattr(tokenizer, f"{role}_token", tokenizer.convert_ids_to_tokens(int(field.contents())))
    adds_bos = fields.get("tokenizer.ggml.add_bos_token")
    if adds_bos is not None and hasattr(tokenizer, "add_bos_token"):
        tokenizer.add_bos_token = bool(adds_bos.contents())
    return tokenizer


def _publish(content: Path, folder: Path) -> None:
    """Move a complete conversion to its place in one step; one that another process put there first is as good."""
    try:
        content.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        shutil.rmtree(content)
