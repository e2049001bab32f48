"""Pairs loaded from directories: what is recorded about them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from specaudit.core.errors import ModelError, SpecauditError, UsageError
from specaudit.models.digest import model_digest
from specaudit.models.drafts import StressDraft
from specaudit.models.loaded import LoadedModel
from specaudit.models.loading import describe, load_pair
from specaudit.models.options import LoadOptions
from tests.models.tiny_models import ARCHITECTURES, VOCAB_SIZE, save_model, tiny_model, tiny_tokenizer

CPU = LoadOptions(device="cpu")
IDS = torch.tensor([[5, 9, 2, 7]])


@pytest.fixture
def saved(tmp_path: Path) -> str:
    """A tiny Llama with its tokenizer, as a model directory."""
    return save_model(tmp_path / "saved", tiny_model("llama"), tiny_tokenizer())


def _edit_json(path: str, file: str, **changes: Any) -> None:
    edited = Path(path) / file
    edited.write_text(json.dumps(json.loads(edited.read_text()) | changes))


def _target(path: str, options: LoadOptions = CPU) -> LoadedModel:
    return load_pair(path, None, options=options).target


def _failure(target: str, draft: str | None = None, options: LoadOptions = CPU) -> SpecauditError:
    with pytest.raises(SpecauditError) as caught:
        load_pair(target, draft, options=options)
    assert caught.value.way_out
    return caught.value


def test_bare_bundled_target_brings_its_draft() -> None:
    pair = load_pair("bundled:llama", None, options=CPU)
    assert isinstance(pair.draft, LoadedModel)
    assert pair.draft.digest != pair.target.digest
    assert pair.draft.vocab_size == pair.target.vocab_size
    assert pair.target.eos_token_ids
    assert load_pair("bundled:llama", None, options=CPU).target.digest == pair.target.digest


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_directory_loads_as_it_was_saved(tmp_path: Path, name: str) -> None:
    model = tiny_model(name)
    loaded = _target(save_model(tmp_path, model, tiny_tokenizer()))
    assert torch.equal(loaded.model(IDS).logits, model(IDS).logits)
    assert loaded.vocab_size == VOCAB_SIZE
    assert (loaded.dtype, loaded.device, loaded.attn) == (torch.float32, torch.device("cpu"), "sdpa")
    assert (loaded.eos_token_ids, loaded.pad_token_id) == (frozenset({0}), 1)
    assert not loaded.model.training
    assert not any(parameter.requires_grad for parameter in loaded.model.parameters())


def test_no_draft_is_loaded_unless_asked_for(saved: str) -> None:
    assert load_pair(saved, None, options=CPU).draft is None


@pytest.mark.parametrize("draft", ["layers:2", "noisy:0.1"])
def test_derived_drafts_are_models(saved: str, draft: str) -> None:
    pair = load_pair(saved, draft, options=CPU)
    assert isinstance(pair.draft, LoadedModel)
    assert pair.draft.source == draft
    assert pair.draft.tokenizer is pair.target.tokenizer
    assert pair.draft.digest != pair.target.digest
    again = load_pair(saved, draft, options=CPU).draft
    assert isinstance(again, LoadedModel)
    assert again.digest == pair.draft.digest


def test_a_stress_draft_is_a_recipe(saved: str) -> None:
    pair = load_pair(saved, "stress:0.3", options=LoadOptions(seed=5, device="cpu"))
    assert pair.draft == StressDraft(rate=0.3, seed=5)


def test_the_same_directory_as_draft_is_a_second_model(saved: str) -> None:
    pair = load_pair(saved, saved, options=CPU)
    assert isinstance(pair.draft, LoadedModel)
    assert pair.draft.model is not pair.target.model
    assert pair.draft.digest == pair.target.digest


@pytest.mark.parametrize("draft", ["layers:2", "noisy:0.1", "stress:0.5"])
def test_a_derived_draft_is_no_target(draft: str) -> None:
    assert isinstance(_failure(draft), UsageError)


@pytest.mark.parametrize(
    ("asked", "got"),
    [(None, torch.float32), ("auto", torch.bfloat16), ("float64", torch.float64), ("float16", torch.float16)],
)
def test_the_dtype_is_that_asked_for(tmp_path: Path, asked: str | None, got: torch.dtype) -> None:
    path = save_model(tmp_path, tiny_model("llama").to(torch.bfloat16), tiny_tokenizer())
    loaded = _target(path, LoadOptions(dtype=asked, device="cpu"))
    assert loaded.dtype == got
    assert {parameter.dtype for parameter in loaded.model.parameters()} == {got}


def test_the_attention_is_that_asked_for(saved: str) -> None:
    assert _target(saved, LoadOptions(attn="eager", device="cpu")).attn == "eager"
    assert "--attn" in (_failure(saved, options=LoadOptions(attn="nope", device="cpu")).way_out or "")


@pytest.mark.parametrize("device", ["nope", "meta", "cuda:99"])
def test_a_device_that_cannot_be_used_is_refused(saved: str, device: str) -> None:
    assert _failure(saved, options=LoadOptions(device=device)).where == "--device"


# Digests


def test_the_digest_is_of_weights_type_and_configuration() -> None:
    model = tiny_model("llama")
    before = model_digest(model)
    assert model_digest(tiny_model("llama")) == before
    model.model.layers[3].mlp.up_proj.weight[0, 0] += 2**-20
    changed = model_digest(model)
    assert changed != before
    others = {
        model_digest(tiny_model("llama", rms_norm_eps=1e-3)),
        model_digest(tiny_model("llama").to(torch.bfloat16)),
        model_digest(tiny_model("llama", seed=1)),
    }
    assert len({before, changed, *others}) == 5


def test_the_digest_knows_negative_zero_and_nan() -> None:
    model = tiny_model("llama")
    digests = set()
    for value in (0.0, -0.0, float("nan")):
        model.lm_head.weight[0, 0] = value
        digests.add(model_digest(model))
    assert len(digests) == 3


def test_the_digest_does_not_depend_on_the_folder(tmp_path: Path) -> None:
    first, second = (_target(save_model(tmp_path / name, tiny_model("llama"), tiny_tokenizer())) for name in ("a", "b"))
    assert first.digest == second.digest


# Special ids


def test_a_list_of_eos_in_the_generation_config_counts(saved: str) -> None:
    _edit_json(saved, "generation_config.json", eos_token_id=[7, 9], pad_token_id=5)
    assert _target(saved).eos_token_ids == {7, 9}


def test_eos_is_the_tokenizers_where_no_configuration_has_one() -> None:
    model = tiny_model("llama")
    model.generation_config.eos_token_id = model.config.eos_token_id = None
    assert describe(model, tiny_tokenizer(), source="x").eos_token_ids == {0}


def test_padding_falls_back_to_an_id_that_exists() -> None:
    model = tiny_model("llama")
    tokenizer = tiny_tokenizer()
    tokenizer.pad_token = None
    model.generation_config.pad_token_id = 6
    assert describe(model, tokenizer, source="x").pad_token_id == 6
    model.generation_config.pad_token_id = VOCAB_SIZE  # no embedding
    model.generation_config.eos_token_id = [9, 8]
    assert describe(model, tokenizer, source="x").pad_token_id == 8
    model.generation_config.eos_token_id = model.config.eos_token_id = None
    tokenizer.eos_token = None
    nothing = describe(model, tokenizer, source="x")
    assert (nothing.pad_token_id, nothing.eos_token_ids) == (0, frozenset())


# Vocabularies


def test_a_draft_whose_ids_mean_something_else_is_refused(saved: str, tmp_path: Path) -> None:
    draft = save_model(tmp_path / "draft", tiny_model("llama"), tiny_tokenizer(swapped=True))
    error = _failure(saved, draft)
    assert saved in error.message
    assert draft in error.message
    assert "is 10 in the target and 11 in the draft" in error.message


@pytest.mark.parametrize(
    ("size", "extra", "has_tokenizer", "problem"),
    [
        (VOCAB_SIZE, 0, True, None),
        (VOCAB_SIZE, 3, True, None),  # tokens that the target lacks, within its embedding
        (280, 0, True, None),  # an embedding padded less
        (VOCAB_SIZE, 0, False, None),
        (320, 0, True, "unknown to the target"),
        (259, 0, True, "cannot read all"),
        (280, 0, False, "no tokenizer to compare"),
    ],
)
def test_sizes_may_differ_within_limits(
    saved: str, tmp_path: Path, size: int, extra: int, has_tokenizer: bool, problem: str | None
) -> None:
    tokenizer = tiny_tokenizer(extra=extra) if has_tokenizer else None
    draft = save_model(tmp_path / "draft", tiny_model("gpt2", vocab_size=size), tokenizer)
    if problem is None:
        pair = load_pair(saved, draft, options=CPU)
        assert isinstance(pair.draft, LoadedModel)
        assert pair.draft.vocab_size == size
        assert (pair.draft.tokenizer is pair.target.tokenizer) != has_tokenizer
    else:
        assert problem in _failure(saved, draft).message


# Directories that will not do


def test_pickled_weights_are_refused_unless_allowed(tmp_path: Path) -> None:
    model = tiny_model("llama")
    path = save_model(tmp_path, model, tiny_tokenizer())
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    error = _failure(path)
    assert "pickled (pytorch_model.bin)" in error.message
    assert "--allow-pickle" in (error.way_out or "")
    loaded = _target(path, LoadOptions(allow_pickle=True, device="cpu"))
    assert torch.equal(loaded.model(IDS).logits, model(IDS).logits)


def test_a_checkpoint_that_lacks_weights_is_refused(saved: str) -> None:
    weights = load_file(f"{saved}/model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"], weights["model.norm.weight"]
    save_file(weights, f"{saved}/model.safetensors", metadata={"format": "pt"})
    assert "lacks weights of the model: model.layers.1.mlp.up_proj.weight and 1 more" in _failure(saved).message


def test_weights_of_another_shape_are_refused(saved: str) -> None:
    _edit_json(saved, "config.json", intermediate_size=48)
    error = _failure(saved)
    assert isinstance(error, ModelError)
    assert "another shape" in error.message
    assert "model.layers.0.mlp.down_proj.weight and 11 more" in error.message


def test_damaged_weights_are_refused(saved: str) -> None:
    (Path(saved) / "model.safetensors").write_bytes(b"not weights")
    assert saved in (_failure(saved).where or "")


def test_code_that_comes_with_a_model_is_not_run(saved: str, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    (Path(saved) / "configuration_evil.py").write_text(f"open({str(mark)!r}, 'w')\n")
    _edit_json(saved, "config.json", model_type="evil", auto_map={"AutoConfig": "configuration_evil.Evil"})
    assert "--trust-remote-code" in (_failure(saved).way_out or "")
    assert not mark.exists()


def test_an_unknown_architecture_is_named(saved: str) -> None:
    _edit_json(saved, "config.json", model_type="nonesuch")
    error = _failure(saved)
    assert "nonesuch" in error.message
    assert "transformers release" in (error.way_out or "")


def test_a_folder_that_is_no_model_is_refused(tmp_path: Path) -> None:
    assert "no config.json" in _failure(str(tmp_path)).message
    (tmp_path / "m.gguf").touch()
    assert "m.gguf" in (_failure(str(tmp_path)).way_out or "")


def test_a_folder_without_weights_is_refused(saved: str, tmp_path: Path) -> None:
    (tmp_path / "saved" / "model.safetensors").unlink()
    assert "no weights" in _failure(saved).message


def test_a_target_needs_a_tokenizer(tmp_path: Path) -> None:
    path = save_model(tmp_path, tiny_model("llama"), None)
    assert "tokenizer.json" in (_failure(path).way_out or "")


def test_a_draft_that_is_misspelt_is_refused_before_anything_is_loaded() -> None:
    assert "layers:N" in (_failure("bundled:llama", "layer:2").way_out or "")


def test_a_draft_revision_needs_a_draft(saved: str) -> None:
    assert _failure(saved, options=LoadOptions(draft_revision="main")).where == "--draft-revision"


def test_loading_says_nothing(saved: str, capfd: pytest.CaptureFixture[str]) -> None:
    _target(saved)
    assert capfd.readouterr() == ("", "")
