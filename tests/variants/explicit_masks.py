"""Slots never move; 4-D masks say what each query sees, in a window by tokens and not by columns."""

from __future__ import annotations

from typing import Any

import torch

from specaudit.batch.cache import Feeder, SlotCache
from specaudit.decoders.acceptance import accepted_counts, committed_tokens
from specaudit.decoders.drafting import open_session
from specaudit.decoders.rows import start_rows


def _masks(target: Any, queries: Any, slots: Any) -> Any:
    """Return the mask or masks [B, 1, q, n] for queries and slots at these places of their streams."""
    distance = queries[:, None, :, None] - slots[:, None, None, :]
    is_seen = (distance >= 0) & (slots >= 0)[:, None, None, :]
    window = getattr(target.config, "sliding_window", None)
    if window is None:
        return is_seen
    in_window = is_seen & (distance < window)
    if "full_attention" in (getattr(target.config, "layer_types", None) or []):
        return {"full_attention": is_seen, "sliding_attention": in_window}
    return in_window


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
    feeder = Feeder(target, SlotCache(target))
    width = max(map(len, prompts))
    padded = torch.tensor([[pad_token_id] * (width - len(prompt)) + prompt for prompt in prompts])
    index = torch.tensor([[-1] * (width - len(prompt)) + list(range(len(prompt))) for prompt in prompts])
    logits = feeder.feed(padded, attention_mask=_masks(target, index, index), position_ids=index.clamp(min=0))
    for row, token in zip(rows, logits[:, -1].argmax(-1).tolist(), strict=True):
        row.commit([token])
    while not all(row.is_finished for row in rows):
        proposals = session.propose(rows, draft_tokens)
        block = torch.cat([torch.tensor([[row.output[-1]] for row in rows]), proposals], dim=1)
        positions = torch.tensor([[row.length - 1] for row in rows]) + torch.arange(draft_tokens + 1)
        index = torch.cat([index, positions], dim=1)  # place in the stream of each slot, -1 for none: [B, n]
        logits = feeder.feed(block, attention_mask=_masks(target, positions, index), position_ids=positions)
        predictions = logits.argmax(-1)
        accepted = accepted_counts(proposals, predictions)
        for row, tokens in zip(rows, committed_tokens(proposals, predictions, accepted), strict=True):
            row.commit(tokens)
        index[:, -draft_tokens:] = index[:, -draft_tokens:].masked_fill(
            torch.arange(draft_tokens) >= accepted[:, None], -1
        )
    return [row.output for row in rows]
