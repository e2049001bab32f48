"""Transformers' own assisted generation, which decodes one prompt at a time.

Run so that it can be compared: K proposals in every round (schedule `constant`), no cut where the draft is unsure, greedy,
and none of the defaults that a model brings along. Cache, masks and positions are transformers' own, and so are its limits:
release 4 (4.57.6) generates nothing when one new token is asked for after a prompt that ends with EOS, and raises where a
generation config with a least length is applied.
"""

from __future__ import annotations

import copy
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from transformers import GenerationConfig

from specaudit.models.restraint import quiet_transformers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@torch.no_grad()
def decode(
    target: PreTrainedModel,
    draft: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    prompts: list[list[int]],
    *,
    max_new_tokens: int,
    draft_tokens: int,
    eos_token_ids: set[int],
    pad_token_id: int,
    generation_config: GenerationConfig | None = None,
) -> list[list[int]]:
    """Decode each prompt on its own; `tokenizer` is not used."""
    config = _new_config() if generation_config is None else copy.deepcopy(generation_config)
    config.do_sample = False
    config.max_new_tokens = max_new_tokens
    config.eos_token_id = sorted(eos_token_ids) or None
    config.pad_token_id = pad_token_id
    assistant_config = _new_config(
        num_assistant_tokens=draft_tokens, num_assistant_tokens_schedule="constant", assistant_confidence_threshold=0.0
    )
    generate: Any = target.generate
    outputs = []
    with quiet_transformers(), warnings.catch_warnings(), _defaults(target, config), _defaults(draft, assistant_config):
        warnings.simplefilter("ignore")  # advice on settings, once a call
        for prompt in prompts:
            input_ids = torch.tensor([prompt], device=target.device)
            generated = generate(
                input_ids,
                attention_mask=torch.ones_like(input_ids),
                generation_config=config,
                assistant_model=draft,
            )
            outputs.append(generated[0, len(prompt) :].tolist())
    return outputs


def _new_config(**settings: Any) -> GenerationConfig:
    return GenerationConfig(**settings)  # type: ignore[no-untyped-call]


@contextmanager
def _defaults(model: PreTrainedModel, config: GenerationConfig) -> Iterator[None]:
    """Make `config` the model's own generation config in the block: what a call leaves open is filled in from there."""
    own = model.generation_config
    model.generation_config = config
    try:
        yield
    finally:
        model.generation_config = own
