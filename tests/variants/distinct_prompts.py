"""Equal prompts are decoded once and their output is returned for each of them."""

from __future__ import annotations

from typing import Any

import torch

from specaudit.faults.legal import no_bonus


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
    distinct = [list(prompt) for prompt in dict.fromkeys(map(tuple, prompts))]
    outputs = no_bonus.decode(
        target,
        draft,
        tokenizer,
        distinct,
        max_new_tokens=max_new_tokens,
        draft_tokens=draft_tokens,
        eos_token_ids=eos_token_ids,
        pad_token_id=pad_token_id,
    )
    return [outputs[distinct.index(prompt)] for prompt in prompts]
