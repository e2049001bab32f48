"""Warms the target up with an unmasked forward of the padded prompts, then decodes."""

from __future__ import annotations

from typing import Any

import torch

from specaudit.batch.padding import left_pad
from specaudit.faults.legal import plain_loop


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
    target(left_pad(prompts, pad_token_id=pad_token_id, device=target.device).input_ids)
    return plain_loop.decode(
        target,
        draft,
        tokenizer,
        prompts,
        max_new_tokens=max_new_tokens,
        draft_tokens=draft_tokens,
        eos_token_ids=eos_token_ids,
        pad_token_id=pad_token_id,
    )
