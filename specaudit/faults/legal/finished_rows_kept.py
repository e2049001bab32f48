"""Finished rows stay in the batch and go on decoding; what they add is thrown away."""

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
    endless = start_rows(prompts, budget=10_000, eos_token_ids=())
    session = open_session(draft, pad_token_id=pad_token_id, device=target.device)
    batch = Rectangle(target, pad_token_id)
    for pair, token in zip(
        zip(rows, endless, strict=True), batch.prefill(prompts)[:, -1].argmax(-1).tolist(), strict=True
    ):
        for row in pair:
            row.commit([token])
    while not all(row.is_finished for row in rows):
        batch.keep([row.length - 1 for row in endless])
        proposals = session.propose(endless, draft_tokens)
        pending = torch.tensor([[row.output[-1]] for row in endless])
        predictions = batch.feed(torch.cat([pending, proposals], dim=1)).argmax(-1)  # [B, K + 1]
        accepted = accepted_counts(proposals, predictions)
        for place, tokens in enumerate(committed_tokens(proposals, predictions, accepted)):
            rows[place].commit(tokens)
            endless[place].commit(tokens)
    return [row.output for row in rows]
