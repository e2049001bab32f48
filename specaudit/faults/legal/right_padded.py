"""Prompts padded on the right: the padding stays between prompt and output, hidden by the mask."""

from __future__ import annotations

from typing import Any

import torch

from specaudit.batch.cache import Feeder, SlotCache
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
    """Decode all prompts; `tokenizer` is not used."""
    rows = start_rows(prompts, budget=max_new_tokens, eos_token_ids=eos_token_ids)
    session = open_session(draft, pad_token_id=pad_token_id, device=target.device)
    feeder = Feeder(target, SlotCache(target))
    width = max(map(len, prompts))
    lengths = torch.tensor([len(prompt) for prompt in prompts])
    mask = (torch.arange(width) < lengths[:, None]).long()
    input_ids = torch.tensor([prompt + [pad_token_id] * (width - len(prompt)) for prompt in prompts])
    logits = feeder.feed(input_ids, attention_mask=mask, position_ids=torch.arange(width).expand(len(prompts), -1))
    first = logits[torch.arange(len(prompts)), lengths - 1].argmax(-1)
    for row, token in zip(rows, first.tolist(), strict=True):
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
