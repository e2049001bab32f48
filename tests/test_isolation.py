"""What a decoder leaves behind is put back, also when it raises."""

from __future__ import annotations

import copy
import random

import pytest
import torch

from specaudit.isolation import isolated, weight_versions
from tests.random_models import random_model


class Tokenizer:
    """The settings of a tokenizer that decoders change."""

    padding_side = "right"
    pad_token = "<pad>"


def misbehave(model: torch.nn.Module, tokenizer: Tokenizer) -> None:
    """Change what a decoder may change, and raise."""
    random.random()
    torch.rand(5)
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(torch.get_num_threads() + 1)
    model.train()
    model.config._attn_implementation = "eager"
    model.generation_config.repetition_penalty = 1.5
    model.generation_config = copy.deepcopy(model.generation_config)
    tokenizer.padding_side, tokenizer.pad_token = "left", "</s>"
    raise RuntimeError("the decoder's own")


def test_global_state_is_put_back_after_an_error() -> None:
    model, tokenizer = copy.deepcopy(random_model("llama")), Tokenizer()
    threads = torch.get_num_threads()
    generation_config, settings = model.generation_config, model.generation_config.to_dict()
    random.seed(1)
    torch.manual_seed(1)
    expected = (random.random(), torch.rand(1).item())
    random.seed(1)
    torch.manual_seed(1)
    with pytest.raises(RuntimeError, match="decoder"), isolated([model], tokenizer, seed=0):
        misbehave(model, tokenizer)
    assert (random.random(), torch.rand(1).item()) == expected
    assert torch.get_default_dtype() is torch.float32
    assert torch.is_grad_enabled()
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.get_num_threads() == threads
    assert not model.training
    assert model.config._attn_implementation == "sdpa"
    assert model.generation_config is generation_config
    assert generation_config.to_dict() == settings
    assert (tokenizer.padding_side, tokenizer.pad_token) == ("right", "<pad>")


def test_a_seed_decides_what_a_decoder_draws() -> None:
    draws = []
    for seed in (3, 3, 4):
        with isolated([], None, seed=seed):
            draws.append((random.random(), torch.rand(1).item()))
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.parametrize("change", ["in-place", "replaced"])
def test_changed_weights_are_noticed(change: str) -> None:
    model = copy.deepcopy(random_model("llama"))
    before = weight_versions(model)
    assert weight_versions(model) == before
    weight = model.get_input_embeddings().weight
    if change == "in-place":
        weight.mul_(1.0)
    else:
        weight.data = weight.data.clone()
    assert weight_versions(model) != before
