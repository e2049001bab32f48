"""Left-padded batched greedy decoding: what a user would run instead of speculation.

As in transformers' `generate`, finished rows stay in the batch and are fed padding until the last row is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from specaudit.batch.cache import Feeder, SlotCache
from specaudit.batch.padding import content_mask, following_positions, left_pad
from specaudit.decoders.choice import token_choice
from specaudit.decoders.rows import start_rows

if TYPE_CHECKING:
    from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase


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
    generation_config: GenerationConfig | None = None,
) -> list[list[int]]:
    """Decode all prompts in one batch; `draft`, `tokenizer` and `draft_tokens` are not used."""
    choice = token_choice(target, generation_config, max_new_tokens=max_new_tokens, eos_token_ids=eos_token_ids)
    rows = start_rows(prompts, budget=max_new_tokens, eos_token_ids=eos_token_ids)
    batch = left_pad(prompts, pad_token_id=pad_token_id, device=target.device)
    feeder = Feeder(target, SlotCache(target))
    block, mask, positions, lengths = batch.input_ids, batch.attention_mask, batch.position_ids, batch.lengths
    while True:
        logits = feeder.feed(block, attention_mask=mask, position_ids=positions)
        tokens = choice.choose(logits[:, -1:], rows)[:, 0]  # [B]
        for row, token in zip(rows, tokens.tolist(), strict=True):
            row.commit([token])
        if all(row.is_finished for row in rows):
            return [row.output for row in rows]
        finished = torch.tensor([row.is_finished for row in rows], device=target.device)
        block = torch.where(finished, pad_token_id, tokens)[:, None]
        positions = following_positions(lengths, 1)
        lengths = lengths + 1
        mask = content_mask(lengths, feeder.cache.width + 1)
