"""Calls the inner model and the head itself, on the last hidden states alone."""

from __future__ import annotations

from typing import Any

import torch
from transformers import DynamicCache

from specaudit.batch.cache import accepted_arguments
from specaudit.batch.padding import content_mask, following_positions, left_pad
from specaudit.decoders.rows import start_rows


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
    rows = start_rows(prompts, budget=max_new_tokens, eos_token_ids=eos_token_ids)
    batch = left_pad(prompts, pad_token_id=pad_token_id, device=target.device)
    cache = DynamicCache()
    body = next(getattr(target, name) for name in ("model", "transformer", "gpt_neox") if hasattr(target, name))
    argument = "cache" if "cache" in accepted_arguments(target) else "past_key_values"
    block, mask, positions, lengths = batch.input_ids, batch.attention_mask, batch.position_ids, batch.lengths
    while True:
        output = body(block, attention_mask=mask, position_ids=positions, use_cache=True, **{argument: cache})
        logits = target.get_output_embeddings()(output.last_hidden_state[:, -1:])
        for row, token in zip(rows, logits[:, -1].argmax(-1).tolist(), strict=True):
            row.commit([token])
        if all(row.is_finished for row in rows):
            return [row.output for row in rows]
        block = torch.tensor([[row.output[-1]] for row in rows])
        positions = following_positions(lengths, 1)
        lengths = lengths + 1
        mask = content_mask(lengths, int(cache.get_seq_length()) + 1)
