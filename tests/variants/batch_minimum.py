"""Every row is cut back to the shortest acceptance of the batch: accepted tokens are fed again."""

from __future__ import annotations

from typing import Any

import torch

from specaudit.decoders.acceptance import accepted_counts
from specaudit.decoders.drafting import open_session
from specaudit.decoders.rows import start_rows
from specaudit.faults.legal.rectangle import Rectangle


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
    batch = Rectangle(target, pad_token_id)
    for row, token in zip(rows, batch.prefill(prompts)[:, -1].argmax(-1).tolist(), strict=True):
        row.commit([token])

    active = rows
    while places := [place for place, row in enumerate(active) if not row.is_finished]:
        active = [active[place] for place in places]
        batch.keep([row.length - 1 for row in active], places)
        proposals = session.propose(active, draft_tokens)
        pending = torch.tensor([[row.output[-1]] for row in active])
        predictions = batch.feed(torch.cat([pending, proposals], dim=1)).argmax(-1)  # [B, K + 1]
        shortest = int(accepted_counts(proposals, predictions).min())
        for row, tokens in zip(active, predictions[:, : shortest + 1].tolist(), strict=True):
            row.commit(tokens)
    return [row.output for row in rows]
