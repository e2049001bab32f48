"""The reference: batch-1 greedy decoding, its own slow and obvious loop.

No padding, no batch, no mask to get wrong: one token a forward, its position stated, argmax of the raw logits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from specaudit.batch.cache import Feeder, SlotCache
from specaudit.decoders.rows import start_rows

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@torch.no_grad()
def decode(
    target: PreTrainedModel,
    draft: Any,
    tokenizer: PreTrainedTokenizerBase | None,
    prompts: list[list[int]],
    *,
    max_new_tokens: int,
    draft_tokens: int,
    eos_token_ids: set[int],
    pad_token_id: int,
) -> list[list[int]]:
    """Decode each prompt on its own; `draft`, `tokenizer`, `draft_tokens` and `pad_token_id` are not used."""
    rows = start_rows(prompts, budget=max_new_tokens, eos_token_ids=eos_token_ids)
    for row in rows:
        feeder = Feeder(target, SlotCache(target))
        block = list(row.prompt)
        while not row.is_finished:
            input_ids = torch.tensor([block], device=target.device)
            positions = torch.arange(row.length - len(block), row.length, device=target.device)[None]
            logits = feeder.feed(input_ids, attention_mask=None, position_ids=positions)
            token = int(logits[0, -1].argmax())
            row.commit([token])
            block = [token]
    return [row.output for row in rows]
