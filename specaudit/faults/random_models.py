"""Random models with a large init, built in process: greedy output is varied, faults show, nothing is loaded."""

from __future__ import annotations

import copy
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    FalconConfig,
    FalconForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    Glm4Config,
    Glm4ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    OPTConfig,
    OPTForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel

VOCABULARY = 64
"""Tokens of a random model, unless said otherwise."""

WINDOW = 8
"""Slots in the window of those that have one."""

_IDS: dict[str, Any] = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "tie_word_embeddings": False}
_SHAPE: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
    **_IDS,
}


def _llama(vocabulary: int) -> PreTrainedModel:
    return LlamaForCausalLM(LlamaConfig(**_SHAPE, vocab_size=vocabulary))


def _mistral(vocabulary: int) -> PreTrainedModel:
    return MistralForCausalLM(MistralConfig(**_SHAPE, vocab_size=vocabulary, sliding_window=WINDOW))


def _gemma3(vocabulary: int) -> PreTrainedModel:
    layer_types = ["sliding_attention", "full_attention", "sliding_attention"]
    return Gemma3ForCausalLM(
        Gemma3TextConfig(**_SHAPE, vocab_size=vocabulary, sliding_window=WINDOW, head_dim=8, layer_types=layer_types)
    )


def _gpt2(vocabulary: int) -> PreTrainedModel:
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=vocabulary, n_embd=32, n_layer=3, n_head=4, n_positions=512, initializer_range=0.3, **_IDS
        )
    )


def _opt(vocabulary: int) -> PreTrainedModel:
    return OPTForCausalLM(
        OPTConfig(
            vocab_size=vocabulary,
            hidden_size=32,
            ffn_dim=64,
            num_hidden_layers=3,
            num_attention_heads=4,
            max_position_embeddings=512,
            word_embed_proj_dim=32,
            init_std=0.3,
            dropout=0.0,
            **_IDS,
        )
    )


def _gpt_neox(vocabulary: int) -> PreTrainedModel:
    shape = {name: value for name, value in _SHAPE.items() if name != "num_key_value_heads"}
    return GPTNeoXForCausalLM(GPTNeoXConfig(**shape, vocab_size=vocabulary))


def _phi3(vocabulary: int) -> PreTrainedModel:
    return Phi3ForCausalLM(Phi3Config(**_SHAPE, vocab_size=vocabulary))


def _qwen3(vocabulary: int) -> PreTrainedModel:
    return Qwen3ForCausalLM(Qwen3Config(**_SHAPE, vocab_size=vocabulary, head_dim=8))


def _glm4(vocabulary: int) -> PreTrainedModel:
    return Glm4ForCausalLM(Glm4Config(**_SHAPE, vocab_size=vocabulary, head_dim=8))


def _bloom(vocabulary: int) -> PreTrainedModel:
    return BloomForCausalLM(
        BloomConfig(vocab_size=vocabulary, hidden_size=32, n_layer=3, n_head=4, initializer_range=0.3, **_IDS)
    )


def _falcon(vocabulary: int) -> PreTrainedModel:
    return FalconForCausalLM(
        FalconConfig(
            vocab_size=vocabulary,
            hidden_size=32,
            num_hidden_layers=3,
            num_attention_heads=4,
            initializer_range=0.3,
            alibi=False,
            **_IDS,
        )
    )


BUILDERS = {
    "llama": _llama,
    "mistral": _mistral,
    "gemma3": _gemma3,
    "gpt2": _gpt2,
    "opt": _opt,
    "gpt_neox": _gpt_neox,
    "phi3": _phi3,
    "qwen3": _qwen3,
    "glm4": _glm4,
}
"""Architectures whose inner state can be observed."""

BYPASSING_BUILDERS = {"bloom": _bloom, "falcon": _falcon}
"""Architectures whose attention never goes through transformers' registry, so that no tap sees it."""


@cache
def random_model(
    architecture: str, dtype: torch.dtype = torch.float64, vocabulary: int = VOCABULARY
) -> PreTrainedModel:
    """Return a random model, the same every time; not to be changed."""
    torch.manual_seed(0)
    model: Any = {**BUILDERS, **BYPASSING_BUILDERS}[architecture](vocabulary).to(dtype).eval()  # type: ignore[arg-type]
    model.generation_config.eos_token_id = None
    return model.requires_grad_(False)  # type: ignore[no-any-return]


@cache
def random_draft(
    architecture: str, scale: float, dtype: torch.dtype = torch.float64, vocabulary: int = VOCABULARY
) -> PreTrainedModel:
    """Return a copy of the random model with seeded noise of `scale` standard deviations on each matrix."""
    draft = copy.deepcopy(random_model(architecture, dtype, vocabulary))
    generator = torch.Generator().manual_seed(1)
    for parameter in draft.parameters():
        if parameter.dim() > 1:
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64).to(dtype)
            parameter.add_(noise * parameter.std() * scale)
    return draft
