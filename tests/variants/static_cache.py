"""A static cache, longer than needed, left padding; rejected slots stay and are masked."""

from __future__ import annotations

from typing import Any

import torch

from specaudit.batch.cache import Feeder
from specaudit.batch.padding import left_pad
from specaudit.batch.static_cache import StaticSlotCache
from specaudit.decoders.acceptance import accepted_counts, committed_tokens
from specaudit.decoders.drafting import open_session
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
    session = open_session(draft, pad_token_id=pad_token_id, device=target.device)
    batch = left_pad(prompts, pad_token_id=pad_token_id, device=target.device)
    size = batch.input_ids.shape[1] + max_new_tokens * (draft_tokens + 1) + 3
    feeder = Feeder(target, StaticSlotCache(target, rows=len(prompts), size=size))
    mask = batch.attention_mask
    logits = feeder.feed(batch.input_ids, attention_mask=mask, position_ids=batch.position_ids)
    for row, token in zip(rows, logits[:, -1].argmax(-1).tolist(), strict=True):
        row.commit([token])
    fed = torch.arange(draft_tokens + 1)
    while not all(row.is_finished for row in rows):
        proposals = session.propose(rows, draft_tokens)
        block = torch.cat([torch.tensor([[row.output[-1]] for row in rows]), proposals], dim=1)
        positions = torch.tensor([[row.length - 1] for row in rows]) + fed
        seen = torch.cat([mask, torch.ones_like(block)], dim=1)
        predictions = feeder.feed(block, attention_mask=seen, position_ids=positions).argmax(-1)
        accepted = accepted_counts(proposals, predictions)
        for row, tokens in zip(rows, committed_tokens(proposals, predictions, accepted), strict=True):
            row.commit(tokens)
        mask = torch.cat([mask, (fed <= accepted[:, None]).long()], dim=1)
    return [row.output for row in rows]
