"""Transformers' own `generate` on a left-padded batch with a static cache."""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig

from specaudit.faults.authority import until_eos


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
        cache_implementation="static",
        disable_compile=True,
    )

    width = max(map(len, prompts))
    ids = torch.tensor([[pad_token_id] * (width - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    rows = target.generate(ids, attention_mask=mask, generation_config=config)[:, width:].tolist()
    return [until_eos(row, eos_token_ids) for row in rows]
