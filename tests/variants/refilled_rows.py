"""At most `batch_size` rows at a time; a finished row makes room for the next prompt of the queue."""

from __future__ import annotations

from typing import Any

import torch

from specaudit.batch.cache import Feeder, SlotCache
from specaudit.batch.padding import left_pad
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
    batch_size: int = 3,
) -> list[list[int]]:
    rows = start_rows(prompts, budget=max_new_tokens, eos_token_ids=eos_token_ids)
    session = open_session(draft, pad_token_id=pad_token_id, device=target.device)
    feeder = Feeder(target, SlotCache(target))
    waiting, places = list(rows), [None] * batch_size
    mask = torch.zeros(batch_size, 0, dtype=torch.long)
    while waiting or any(row is not None and not row.is_finished for row in places):
        blocks: list[list[int]] = []
        for place, row in enumerate(places):
            if row is None or row.is_finished:
                places[place] = waiting.pop(0) if waiting else None
                mask[place] = 0  # what the place held is hidden for good
                blocks.append(list(places[place].prompt) if places[place] else [])
            else:
                blocks.append([row.output[-1], *session.propose([row], draft_tokens)[0].tolist()])
        batch = left_pad([block or [pad_token_id] for block in blocks], pad_token_id=pad_token_id, device=target.device)
        batch.attention_mask[[place for place, block in enumerate(blocks) if not block]] = 0
        starts = torch.tensor([[max(0, row.length - 1) if row and row.output else 0] for row in places])
        seen = torch.cat([mask, batch.attention_mask], dim=1)
        logits = feeder.feed(batch.input_ids, attention_mask=seen, position_ids=starts + batch.position_ids)
        kept = batch.attention_mask
        for place, row in enumerate(places):
            if row is None:
                continue
            if not row.output:
                row.commit([int(logits[place, -1].argmax())])
                continue
            proposals = torch.tensor([blocks[place][1:]])
            predictions = logits[place, -draft_tokens - 1 :].argmax(-1)[None]
            accepted = accepted_counts(proposals, predictions)
            row.commit(committed_tokens(proposals, predictions, accepted)[0])
            kept[place, kept.shape[1] - draft_tokens + int(accepted) :] = 0
        mask = torch.cat([mask, kept], dim=1)
    return [row.output for row in rows]
