"""Random models of a few thousand weights, one per architecture, and a tokenizer for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import transformers
from tokenizers import Regex, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split
from transformers import PreTrainedTokenizerFast

if TYPE_CHECKING:
    from pathlib import Path

VOCAB_SIZE = 300
LAYERS = 4
CHAT_TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

_SIZES = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 1,
    "bos_token_id": 2,
    "eos_token_id": 0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """How to build a tiny model and where its last norm is."""

    config: str
    """Name of the configuration's class in transformers."""

    changes: dict[str, Any]
    """What its configuration has beside, or instead of, the common sizes; None removes one."""

    norm: str
    """Path of the norm between the last layer and the head."""


ARCHITECTURES = {
    "llama": Architecture(config="LlamaConfig", changes={}, norm="model.norm"),
    "llama-tied": Architecture(config="LlamaConfig", changes={"tie_word_embeddings": True}, norm="model.norm"),
    "mistral": Architecture(config="MistralConfig", changes={"sliding_window": 8}, norm="model.norm"),
    "qwen3": Architecture(config="Qwen3Config", changes={"head_dim": 8}, norm="model.norm"),
    "glm4": Architecture(config="Glm4Config", changes={"head_dim": 8}, norm="model.norm"),
    "phi3": Architecture(config="Phi3Config", changes={}, norm="model.norm"),
    "gemma3": Architecture(
        config="Gemma3TextConfig",
        changes={
            "head_dim": 8,
            "sliding_window": 8,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
        },
        norm="model.norm",
    ),
    "gpt2": Architecture(
        config="GPT2Config",
        changes={"n_embd": 32, "n_layer": LAYERS, "n_head": 4, "n_positions": 128} | dict.fromkeys(
            ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
             "max_position_embeddings")
        ),
        norm="transformer.ln_f",
    ),
    "gpt-neox": Architecture(
        config="GPTNeoXConfig", changes={"num_key_value_heads": None}, norm="gpt_neox.final_layer_norm"
    ),
    "opt": Architecture(
        config="OPTConfig",
        changes={"ffn_dim": 64, "word_embed_proj_dim": 32, "intermediate_size": None, "num_key_value_heads": None},
        norm="model.decoder.final_layer_norm",
    ),
}  # fmt: skip


def tiny_model(name: str, *, seed: int = 0, **changes: Any) -> Any:
    """Return a random causal language model in evaluation mode, with weights large enough for varied greedy output."""
    architecture = ARCHITECTURES[name]
    fields = {key: value for key, value in (_SIZES | architecture.changes | changes).items() if value is not None}
    config = getattr(transformers, architecture.config)(**fields)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.normal_(std=0.3)
    return model.eval().requires_grad_(False)


def tiny_tokenizer(*, swapped: bool = False, extra: int = 0, **settings: Any) -> PreTrainedTokenizerFast:
    """Return a tokenizer with one token a byte and four special ones.

    Args:
        swapped: give two tokens each other's id.
        extra: number of tokens to add at the end.
        settings: what else to set, such as `chat_template`.
    """
    tokens = ["<|endoftext|>", "<|pad|>", "<|bos|>", "<|assistant|>", *sorted(ByteLevel.alphabet())]
    tokens += [f"<extra{number}>" for number in range(extra)]
    if swapped:
        tokens[10], tokens[11] = tokens[11], tokens[10]
    # A word-level model over single bytes: every byte that is split off is a word.
    backend = Tokenizer(WordLevel({token: token_id for token_id, token in enumerate(tokens)}))
    backend.pre_tokenizer = Sequence(
        [ByteLevel(add_prefix_space=False, use_regex=False), Split(Regex("."), behavior="isolated")]
    )
    backend.decoder = ByteLevelDecoder()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token="<|endoftext|>",
        pad_token="<|pad|>",
        bos_token="<|bos|>",
        additional_special_tokens=["<|assistant|>"],
        **settings,
    )


def save_model(folder: Path, model: Any, tokenizer: Any | None) -> str:
    """Write a model, and a tokenizer if there is one, as a model directory; return its path."""
    model.save_pretrained(folder)
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)
    return str(folder)
