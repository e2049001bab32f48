"""The prefix that all prompts share is fed once, by one row, and its cache copied to every row."""

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
    rows = start_rows(prompts, budget=max_new_tokens, eos_token_ids=eos_token_ids)
    shared = 0
    while all(shared < len(prompt) - 1 and prompt[shared] == prompts[0][shared] for prompt in prompts):
        shared += 1
    batch = Rectangle(target, pad_token_id)
    if shared:
        batch.prefill([prompts[0][:shared]])
        batch.keep([shared] * len(rows), [0] * len(rows))
        fed = shared
    else:
        logits = batch.prefill([prompt[:1] for prompt in prompts])
        fed = 1
        for row, token in zip(rows, logits[:, -1].argmax(-1).tolist(), strict=True):
            row.commit([token] if len(row.prompt) == 1 else [])
    active = rows
    while places := [place for place, row in enumerate(active) if not row.is_finished]:
        active = [active[place] for place in places]
        batch.keep([fed] * len(active), places)
        logits = batch.feed(torch.tensor([[row.stream[fed]] for row in active]))
        fed += 1
        for row, token in zip(active, logits[:, -1].argmax(-1).tolist(), strict=True):
            row.commit([token] if fed >= len(row.prompt) else [])
    return [row.output for row in rows]
