"""No draft: one token a forward, finished rows leave the batch."""

from __future__ import annotations

from typing import Any

import torch

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
    batch = Rectangle(target, pad_token_id)
    active, logits = rows, batch.prefill(prompts)
    while True:
        for row, token in zip(active, logits[:, -1].argmax(-1).tolist(), strict=True):
            row.commit([token])
        places = [place for place, row in enumerate(active) if not row.is_finished]
        if not places:
            return [row.output for row in rows]
        active = [active[place] for place in places]
        batch.keep([row.length - 1 for row in active], places)
        logits = batch.feed(torch.tensor([[row.output[-1]] for row in active]))
