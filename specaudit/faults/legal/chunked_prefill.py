"""Prompts are fed a few tokens at a time; short ones wait for the last chunks."""

from __future__ import annotations

from typing import Any

import torch

from specaudit.batch.cache import Feeder, SlotCache
from specaudit.batch.padding import left_pad
from specaudit.decoders.acceptance import accepted_counts, committed_tokens
from specaudit.decoders.drafting import open_session
from specaudit.decoders.rows import start_rows

CHUNK = 3


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
    """Decode all prompts; `tokenizer` is not used."""
    rows = start_rows(prompts, budget=max_new_tokens, eos_token_ids=eos_token_ids)
    session = open_session(draft, pad_token_id=pad_token_id, device=target.device)
    feeder = Feeder(target, SlotCache(target))
    batch = left_pad(prompts, pad_token_id=pad_token_id, device=target.device)
    mask = batch.attention_mask
    for start in range(0, mask.shape[1], CHUNK):
        chunk = slice(start, start + CHUNK)
        logits = feeder.feed(
            batch.input_ids[:, chunk],
            attention_mask=mask[:, : start + CHUNK],
            position_ids=batch.position_ids[:, chunk],
        )
    for row, token in zip(rows, logits[:, -1].argmax(-1).tolist(), strict=True):
        row.commit([token])

    fed = torch.arange(draft_tokens + 1)
    while not all(row.is_finished for row in rows):
        proposals = session.propose(rows, draft_tokens)
        block = torch.cat([torch.tensor([[row.output[-1]] for row in rows]), proposals], dim=1)
        positions = torch.tensor([[row.length - 1] for row in rows]) + fed
        predictions = feeder.feed(
            block, attention_mask=torch.cat([mask, torch.ones_like(block)], dim=1), position_ids=positions
        ).argmax(-1)
        accepted = accepted_counts(proposals, predictions)
        running = torch.tensor([[not row.is_finished] for row in rows])
        for row, tokens in zip(rows, committed_tokens(proposals, predictions, accepted), strict=True):
            row.commit(tokens)
        mask = torch.cat([mask, ((fed <= accepted[:, None]) & running).long()], dim=1)
    return [row.output for row in rows]
