"""Random models with a large init, built in process: greedy output is varied, faults show, nothing is loaded."""

from __future__ import annotations

import copy
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel

VOCABULARY = 64
WINDOW = 8
_IDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
_SHAPE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
    **_IDS,
}


def _llama() -> PreTrainedModel:
    return LlamaForCausalLM(LlamaConfig(**_SHAPE))


def _mistral() -> PreTrainedModel:
    return MistralForCausalLM(MistralConfig(**_SHAPE, sliding_window=WINDOW))


def _gemma3() -> PreTrainedModel:
    layer_types = ["sliding_attention", "full_attention", "sliding_attention"]
    return Gemma3ForCausalLM(Gemma3TextConfig(**_SHAPE, sliding_window=WINDOW, head_dim=8, layer_types=layer_types))


def _gpt2() -> PreTrainedModel:
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCABULARY, n_embd=32, n_layer=3, n_head=4, n_positions=512, initializer_range=0.3, **_IDS
        )
    )


BUILDERS = {"llama": _llama, "mistral": _mistral, "gemma3": _gemma3, "gpt2": _gpt2}


@cache
def random_model(architecture: str, dtype: torch.dtype = torch.float64) -> PreTrainedModel:
    """Return a random model, the same every time; not to be changed by a test."""
    torch.manual_seed(0)
    model = BUILDERS[architecture]().to(dtype).eval()
    model.generation_config.eos_token_id = None
    return model.requires_grad_(False)


@cache
def random_draft(architecture: str, scale: float, dtype: torch.dtype = torch.float64) -> PreTrainedModel:
    """Return a copy of the random model with seeded noise of `scale` standard deviations on each matrix."""
    draft = copy.deepcopy(random_model(architecture, dtype))
    generator = torch.Generator().manual_seed(1)
    for parameter in draft.parameters():
        if parameter.dim() > 1:
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64).to(dtype)
            parameter.add_(noise * parameter.std() * scale)
    return draft
