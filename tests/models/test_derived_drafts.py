"""Drafts made from the target: their logits against an independent computation, and what they share with it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch

from specaudit.core.errors import ModelError
from specaudit.models.drafts import NoisyDraft
from specaudit.models.layers_draft import first_layers
from specaudit.models.noisy_draft import with_noise
from tests.models.tiny_models import ARCHITECTURES, LAYERS, tiny_model

IDS = torch.tensor([[5, 9, 2, 7, 7, 40, 41, 3, 250, 12, 11, 10], [8, 9, 100, 7, 6, 4, 41, 3, 25, 1, 1, 0]])  # [B, T]
MASK = torch.tensor([[1] * 12, [1] * 9 + [0] * 3])


def _pointers(model: Any) -> dict[str, int]:
    return {name: parameter.data_ptr() for name, parameter in model.named_parameters(remove_duplicate=False)}


def _greedy(model: Any, new_tokens: int) -> torch.Tensor:
    ids = IDS[:1]
    for _ in range(new_tokens):
        ids = torch.cat([ids, model(ids, use_cache=False).logits[:, -1:].argmax(-1)], dim=1)
    return ids


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_first_layers_compute_what_the_target_computes_up_to_there(name: str) -> None:
    target = tiny_model(name)
    norm, head = target.get_submodule(ARCHITECTURES[name].norm), target.get_output_embeddings()
    with torch.no_grad():
        whole = target(IDS, attention_mask=MASK, output_hidden_states=True)
        for layers in range(1, LAYERS + 1):
            draft = first_layers(target, layers)
            # The last of the hidden states already went through the norm.
            inner = whole.hidden_states[layers]
            expected = whole.logits if layers == LAYERS else head(norm(inner))
            assert torch.equal(draft(IDS, attention_mask=MASK).logits, expected)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_first_layers_are_the_targets_own_tensors_in_new_modules(name: str) -> None:
    target = tiny_model(name)
    before = target.config.to_dict()
    draft = first_layers(target, 2)
    assert type(draft) is type(target)
    assert draft.config.num_hidden_layers == 2
    assert target.config.to_dict() == before
    assert not draft.training
    own, targets = _pointers(draft), _pointers(target)
    assert own.items() <= targets.items()
    assert len(own) < len(targets)
    assert set(draft.modules()).isdisjoint(target.modules())


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_first_layers_decode_with_a_cache(name: str) -> None:
    draft = first_layers(tiny_model(name), 2)
    cached = draft.generate(IDS[:1], max_new_tokens=20, do_sample=False, eos_token_id=None, pad_token_id=0)
    assert torch.equal(cached, _greedy(draft, 20))


def test_lists_that_speak_of_each_layer_are_cut_too() -> None:
    target = tiny_model("gemma3")
    assert first_layers(target, 3).config.layer_types == target.config.layer_types[:3]


def test_more_layers_than_there_are_is_refused() -> None:
    with pytest.raises(ModelError, match="4 layers") as caught:
        first_layers(tiny_model("llama"), 5)
    assert caught.value.way_out == "give layers:4 or fewer"


def test_layers_that_cannot_be_found_are_an_error() -> None:
    target = tiny_model("llama")
    target.model.layers = torch.nn.Sequential(*target.model.layers)
    with pytest.raises(ModelError, match="cannot find the 4 layers of LlamaForCausalLM"):
        first_layers(target, 2)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_noise_has_the_asked_size_and_leaves_the_target_alone(name: str) -> None:
    target = tiny_model(name)
    before = {key: value.clone() for key, value in target.state_dict().items()}
    draft = with_noise(target, NoisyDraft(scale=0.2, seed=1))
    for key, value in target.state_dict().items():
        assert torch.equal(value, before[key])
        noise = draft.state_dict()[key] - value
        if value.dim() < 2:
            assert torch.equal(noise, torch.zeros_like(noise))
        else:
            assert float(noise.std() / value.std()) == pytest.approx(0.2, rel=0.1)


def test_noise_depends_on_the_seed_and_the_name_alone() -> None:
    target = tiny_model("llama")
    one = with_noise(target, NoisyDraft(scale=0.1, seed=1)).state_dict()
    torch.manual_seed(99)
    torch.set_num_threads(2)
    try:
        again = with_noise(target, NoisyDraft(scale=0.1, seed=1)).state_dict()
    finally:
        torch.set_num_threads(1)
    other = with_noise(target, NoisyDraft(scale=0.1, seed=2)).state_dict()
    assert all(torch.equal(one[key], again[key]) for key in one)
    matrices = [key for key, value in one.items() if value.dim() > 1]
    assert not any(torch.equal(one[key], other[key]) for key in matrices)
    queries = [one[key] - target.state_dict()[key] for key in matrices if "q_proj" in key]
    assert not any(torch.equal(first, second) for first, second in pairwise(queries))


def test_no_noise_is_the_target() -> None:
    target = tiny_model("gpt2")
    draft = with_noise(target, NoisyDraft(scale=0.0, seed=1))
    assert torch.equal(draft(IDS).logits, target(IDS).logits)


def test_noise_keeps_tied_weights_tied_and_the_type() -> None:
    target = tiny_model("llama-tied").to(torch.bfloat16)
    draft = with_noise(target, NoisyDraft(scale=0.1, seed=1))
    assert draft.lm_head.weight is draft.model.embed_tokens.weight
    assert {parameter.dtype for parameter in draft.parameters()} == {torch.bfloat16}
    assert not torch.equal(draft.lm_head.weight, target.lm_head.weight)


def test_a_constant_matrix_gets_no_noise() -> None:
    target = tiny_model("llama")
    target.lm_head.weight.fill_(0.1)
    draft = with_noise(target, NoisyDraft(scale=1.0, seed=1))
    assert float((draft.lm_head.weight - 0.1).abs().max()) < 1e-4


def test_acceptance_falls_with_the_noise() -> None:
    target = tiny_model("llama")
    expected = target(IDS).logits.argmax(-1)
    shares = [
        float((with_noise(target, NoisyDraft(scale=scale, seed=3))(IDS).logits.argmax(-1) == expected).float().mean())
        for scale in (0.0, 0.2, 3.0)
    ]
    assert shares[0] == 1.0
    assert 0 < shares[1] < 1
    assert shares[2] < shares[1]
