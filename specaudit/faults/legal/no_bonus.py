"""No bonus token after a full acceptance: the last proposal is fed again instead."""

from __future__ import annotations

from typing import Any

import torch

from specaudit.decoders.acceptance import accepted_counts, committed_tokens
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
    """Decode all prompts; `tokenizer` is not used."""
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
        accepted = accepted_counts(proposals, predictions)
        for row, tokens in zip(active, committed_tokens(proposals, predictions, accepted), strict=True):
            row.commit(tokens[:draft_tokens])
    return [row.output for row in rows]
