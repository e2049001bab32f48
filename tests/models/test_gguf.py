"""GGUF files: converted once, completely or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader
from gguf.quants import dequantize
from safetensors.torch import load_file

import specaudit.models.gguf
from specaudit.cache_folder import cache_root
from specaudit.core.errors import ModelError
from specaudit.core.prompt import Message, Prompt
from specaudit.models.gguf import converted_gguf
from specaudit.models.loaded import LoadedModel
from specaudit.models.loading import load_pair
from specaudit.models.options import LoadOptions
from specaudit.models.rendering import render
from tests.smollm2 import share_conversions, smollm2_directory, smollm2_gguf


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of this test's own."""
    monkeypatch.setenv("SPECAUDIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "gguf"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with the ending of a GGUF file and nothing that anyone could read."""
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUFnot really")
    return path


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECAUDIT_CACHE", "~/elsewhere")
    assert cache_root() == Path.home() / "elsewhere"
    monkeypatch.setenv("SPECAUDIT_CACHE", "")
    assert "specaudit" in str(cache_root())


def test_a_file_is_converted_once(cache: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    converted: list[Path] = []

    def convert(source: Path, folder: Path) -> None:
        converted.append(source)
        folder.mkdir()
        (folder / "config.json").write_text("{}")

    monkeypatch.setattr(specaudit.models.gguf, "_convert", convert)
    folder = converted_gguf(file)
    assert converted_gguf(file) == folder
    assert converted == [file]
    assert list(cache.iterdir()) == [folder]
    assert (folder / "config.json").is_file()
    file.write_bytes(b"GGUFsomething else")
    assert converted_gguf(file) != folder


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_interrupted_conversion_leaves_nothing(
    cache: Path, file: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    def convert(source: Path, folder: Path) -> None:
        folder.mkdir()
        (folder / "config.json").write_text("{}")
        raise failure

    monkeypatch.setattr(specaudit.models.gguf, "_convert", convert)
    with pytest.raises((ModelError, KeyboardInterrupt)):
        converted_gguf(file)
    assert list(cache.iterdir()) == []


def test_a_conversion_that_another_process_finished_first_is_used(
    cache: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def convert(source: Path, folder: Path) -> None:
        folder.mkdir()
        (folder / "config.json").write_text("mine")
        other = cache / specaudit.models.gguf._conversion_name(source)
        other.mkdir()
        (other / "config.json").write_text("theirs")

    monkeypatch.setattr(specaudit.models.gguf, "_convert", convert)
    folder = converted_gguf(file)
    assert (folder / "config.json").read_text() == "theirs"
    assert list(cache.iterdir()) == [folder]


def test_a_file_that_is_not_gguf_is_refused(cache: Path, file: Path) -> None:
    with pytest.raises(ModelError, match="cannot convert the GGUF file") as caught:
        load_pair(str(file), None, options=LoadOptions(device="cpu"))
    assert caught.value.where == str(file)
    assert list(cache.iterdir()) == []


def test_the_package_that_reads_gguf_is_asked_for(cache: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specaudit.models.gguf, "find_spec", lambda name: None)
    with pytest.raises(ModelError) as caught:
        converted_gguf(file)
    assert caught.value.way_out == "pip install specaudit[gguf]"


@pytest.mark.slow_model
def test_smollm2_loads_and_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    share_conversions(monkeypatch)
    pair = load_pair(str(smollm2_gguf()), "layers:12", options=LoadOptions(device="cpu"))
    target, draft = pair.target, pair.draft
    # Padding that is EOS, and BOS that opens every turn: why neither may be known by its value.
    assert (target.eos_token_ids, target.pad_token_id, target.tokenizer.bos_token_id) == (frozenset({2}), 2, 1)
    assert target.tokenizer.eos_token_id == 2
    assert target.vocab_size == 49152
    assert target.model.lm_head.weight is target.model.model.embed_tokens.weight
    assert isinstance(draft, LoadedModel)
    assert draft.model.config.num_hidden_layers == 12

    text = Prompt(prompt_id="t", text="The capital of France is", source="test")
    assert render(text, target.tokenizer, chat_template=False) == [504, 3575, 282, 4649, 314]
    chat = Prompt(prompt_id="c", messages=(Message(role="user", content="What is 2+2?"),), source="test")
    assert render(chat, target.tokenizer, chat_template=False)[:2] == [1, 9690]

    ids = target.tokenizer("The capital of France is", return_tensors="pt")["input_ids"]
    output = target.model.generate(ids, max_new_tokens=3, do_sample=False)
    assert "Paris" in target.tokenizer.decode(output[0])


@pytest.mark.slow_model
def test_the_conversion_holds_what_the_file_says() -> None:
    folder = smollm2_directory()
    weights = load_file(folder / "model.safetensors")
    names = {
        "token_embd.weight": "model.embed_tokens.weight",
        "blk.17.ffn_down.weight": "model.layers.17.mlp.down_proj.weight",
        "output_norm.weight": "model.norm.weight",
    }
    tensors = {tensor.name: tensor for tensor in GGUFReader(smollm2_gguf()).tensors if tensor.name in names}
    assert tensors.keys() == names.keys()
    for name, converted in names.items():
        expected = dequantize(tensors[name].data, tensors[name].tensor_type)
        assert np.array_equal(weights[converted].numpy(), expected)
    # The file itself, which transformers 4 would copy along, is not kept twice.
    assert {path.name for path in folder.iterdir()}.isdisjoint({"tokenizer.model", smollm2_gguf().name})
