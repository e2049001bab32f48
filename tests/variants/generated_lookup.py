"""Transformers' own prompt lookup, batch 1."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig


@torch.no_grad()
def decode(
    target: Any,
    draft: Any,
    tokenizer: Any,
    prompts: list[list[int]],
    *,
    max_new_tokens: int,
    draft_tokens: int,
    eos_token_ids: set[int],
    pad_token_id: int,
) -> list[list[int]]:
    config = GenerationConfig(
        max_new_tokens=max_new_tokens,
        do_sample=False,
        eos_token_id=sorted(eos_token_ids) or None,
        pad_token_id=pad_token_id,
        prompt_lookup_num_tokens=draft_tokens,
        max_matching_ngram_size=2,
    )

    outputs = []
    for prompt in prompts:
        ids = torch.tensor([prompt])
        output = target.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)
        outputs.append(output[0, len(prompt) :].tolist())
    return outputs
