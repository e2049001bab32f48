"""What the doctor says of a target that can be observed, and of some that cannot; snapshots with times masked."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
import torch
from transformers import GenerationConfig

from specaudit.faults.random_models import random_model
from specaudit.models.releases import RELEASE
from tests.cli.command import Result, specaudit
from tests.models.tiny_models import save_model, tiny_model, tiny_tokenizer
from tests.smollm2 import smollm2_directory

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion


def masked(result: Result) -> str:
    """Return the snapshot of a result without its times."""
    text = re.sub(r"\S+ tokens a second", "<speed> tokens a second", str(result))
    return re.sub(r"about \S+ s for", "about <time> s for", text)


def test_bundled_pair(in_folder: Path, snapshot: SnapshotAssertion) -> None:
    result = specaudit("doctor", "--decoder", "eqspec,hf-assisted")
    assert result.exit_code == 0
    assert masked(result) == snapshot
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_a_decoder_with_faults(in_folder: Path) -> None:
    result = specaudit("doctor", "--decoder", "dsd", "--draft", "noisy:0.1")
    assert result.exit_code == 0  # it could be told
    assert "violated" in result.stdout


def test_bloom_bypasses_the_registry(in_folder: Path, snapshot: SnapshotAssertion) -> None:
    save_model(in_folder / "bloom", random_model("bloom", torch.float32, 300), tiny_tokenizer())
    result = specaudit("doctor", "--target", "bloom", "--attn", "eager", "--draft", "noisy:0.1", "--decoder", "eqspec")
    assert result.exit_code == 0
    assert masked(result) == snapshot


@pytest.mark.skipif(RELEASE < (5,), reason="transformers 4 has no entry for eager attention")
def test_eager_attention(in_folder: Path, snapshot: SnapshotAssertion) -> None:
    result = specaudit("doctor", "--attn", "eager", "--draft", "ngram", "--decoder", "greedy-batch")
    assert result.exit_code == 0
    assert masked(result) == snapshot


def test_windows_settings_and_padding(in_folder: Path, snapshot: SnapshotAssertion) -> None:
    model = tiny_model("gemma3")
    model.generation_config = GenerationConfig(eos_token_id=[0, 1], repetition_penalty=1.2, suppress_tokens=[3])
    save_model(in_folder / "gemma", model, tiny_tokenizer(chat_template="{{ messages }}"))
    result = specaudit("doctor", "--target", "gemma", "--batch-size", "1", "--length", "4096")
    assert result.exit_code == 0
    assert masked(result) == snapshot


def test_a_target_that_computes_nan(in_folder: Path) -> None:
    model = tiny_model("gpt2")
    with torch.no_grad():
        model.get_output_embeddings().weight.fill_(torch.nan)
    save_model(in_folder / "model", model, tiny_tokenizer())
    result = specaudit("doctor", "--target", "model")
    assert result.exit_code == 0
    assert "NanLogitsError: the target's logits for output token 0 are NaN" in result.stdout


def test_json_alone_on_standard_output(in_folder: Path) -> None:
    result = specaudit("doctor", "--json", "-", "--draft", "layers:2")
    assert result.exit_code == 0
    findings = json.loads(result.stdout)
    target, probe, memory = findings["target"], findings["probe"], findings["memory"]
    assert probe["taps"]["obstacles"] == []
    assert probe["taps"]["attention_layers_seen"] == probe["taps"]["attention_layers"] == len(target["windows"])
    assert probe["tokens_per_second"] > 0
    # The draft is made of the target's own layers: no weights of its own, but a cache.
    assert memory["weight_bytes"] == target["model"]["weight_bytes"]
    assert memory["kv_bytes"] == memory["kv_bytes_per_token"] * 8 * 1024


@pytest.mark.parametrize("options", [["--batch-size", "0"], ["--target", "bundled:lama"], ["--decoder", "eqpsec"]])
def test_bad_input_is_refused(in_folder: Path, options: list[str]) -> None:
    result = specaudit("doctor", *options)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


@pytest.mark.slow_model
def test_smollm2(in_folder: Path, snapshot: SnapshotAssertion) -> None:
    (in_folder / "smollm2").symlink_to(smollm2_directory())
    result = specaudit("doctor", "--target", "smollm2")
    assert result.exit_code == 0
    assert masked(result) == snapshot
