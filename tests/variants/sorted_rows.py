"""Rows are decoded in order of length, a few at a time, and returned in the order of the prompts."""

from __future__ import annotations

from typing import Any

import torch

from tests.variants import hole_masked


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
    order = sorted(range(len(prompts)), key=lambda place: -len(prompts[place]))
    outputs: dict[int, list[int]] = {}
    for first in range(0, len(order), 2):
        places = order[first : first + 2]
        decoded = hole_masked.decode(
            target,
            draft,
            tokenizer,
            [prompts[place] for place in places],
            max_new_tokens=max_new_tokens,
            draft_tokens=draft_tokens,
            eos_token_ids=eos_token_ids,
            pad_token_id=pad_token_id,
        )
        outputs |= dict(zip(places, decoded, strict=True))
    return [outputs[place] for place in range(len(prompts))]
