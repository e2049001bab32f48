"""What a decoder leaves behind is put back, also when it raises."""

from __future__ import annotations

import copy
import io
import os
import random
import sys
from pathlib import Path

import pytest
import torch

from specaudit.canary import Canary
from specaudit.faults.random_models import random_model
from specaudit.isolation import isolated


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
    os.chdir("/")
    sys.stdout = io.StringIO()
    raise RuntimeError("the decoder's own")


def test_global_state_is_put_back_after_an_error() -> None:
    model, tokenizer = copy.deepcopy(random_model("llama")), Tokenizer()
    threads, folder, stdout = torch.get_num_threads(), Path.cwd(), sys.stdout
    generation_config, settings = model.generation_config, model.generation_config.to_dict()
    random.seed(1)
    torch.manual_seed(1)
    expected = (random.random(), torch.rand(1).item())
    random.seed(1)
    torch.manual_seed(1)
    with pytest.raises(RuntimeError, match="decoder"), isolated([model], tokenizer, seed=0):
        misbehave(model, tokenizer)
    assert (random.random(), torch.rand(1).item()) == expected
    assert (Path.cwd(), sys.stdout) == (folder, stdout)
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


def hook(module: torch.nn.Module, arguments: object, output: torch.Tensor) -> torch.Tensor:
    """Change what a module gives."""
    return output.roll(1, -1)


DAMAGE = {
    "weights-in-place": lambda model: model.get_input_embeddings().weight.mul_(1.5),
    "weights-behind-data": lambda model: model.model.layers[1].mlp.up_proj.weight.data.mul_(1.5),
    "buffer": lambda model: model.model.rotary_emb.inv_freq.mul_(1.5),
    "scalar": lambda model: setattr(model.model.layers[0].self_attn, "scaling", 0.1),
    "hook-left-behind": lambda model: model.lm_head.register_forward_hook(hook),
    "forward-that-raises": lambda model: setattr(model.model, "forward", None),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_the_canary_notices_whatever_changes_what_a_model_computes(name: str) -> None:
    model = copy.deepcopy(random_model("llama"))
    canary = Canary([model])
    assert canary.is_alive()
    DAMAGE[name](model)
    assert not canary.is_alive()


def test_the_canary_bears_what_changes_nothing() -> None:
    model = copy.deepcopy(random_model("llama"))
    canary = Canary([model])
    weight = model.get_input_embeddings().weight
    weight.data = weight.data.clone()
    model.lm_head.register_forward_hook(lambda module, arguments, output: None)
    assert canary.is_alive()
