"""No cache: every round feeds whole rows, left-padded, proposals at the end."""

from __future__ import annotations

from typing import Any

import torch

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
) -> list[list[int]]:
    rows = start_rows(prompts, budget=max_new_tokens, eos_token_ids=eos_token_ids)
    session = open_session(draft, pad_token_id=pad_token_id, device=target.device)
    while active := [row for row in rows if not row.is_finished]:
        proposals = session.propose(active, draft_tokens)
        streams = [row.stream + proposed for row, proposed in zip(active, proposals.tolist(), strict=True)]
        batch = left_pad(streams, pad_token_id=pad_token_id, device=target.device)
        logits = target(
            input_ids=batch.input_ids,
            attention_mask=batch.attention_mask,
            position_ids=batch.position_ids,
            use_cache=False,
        ).logits
        predictions = logits[:, -draft_tokens - 1 :].argmax(-1)  # [B, K + 1]
        accepted = accepted_counts(proposals, predictions)
        for row, tokens in zip(active, committed_tokens(proposals, predictions, accepted), strict=True):
            row.commit(tokens)
    return [row.output for row in rows]
