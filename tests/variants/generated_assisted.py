"""Transformers' own assisted generation, batch 1."""

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
    )

    draft.generation_config.num_assistant_tokens = draft_tokens
    draft.generation_config.num_assistant_tokens_schedule = "constant"
    draft.generation_config.assistant_confidence_threshold = 0.0
    outputs = []
    for prompt in prompts:
        ids = torch.tensor([prompt])
        output = target.generate(
            ids, attention_mask=torch.ones_like(ids), generation_config=config, assistant_model=draft
        )
        outputs.append(output[0, len(prompt) :].tolist())
    return outputs
