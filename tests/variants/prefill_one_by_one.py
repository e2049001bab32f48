"""Prompts are fed one token a forward, from the first; each row starts to generate when its own prompt is over."""

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
    batch = Rectangle(target, pad_token_id)
    active, fed = rows, 1
    logits = batch.prefill([prompt[:1] for prompt in prompts])
    while True:
        for row, token in zip(active, logits[:, -1].argmax(-1).tolist(), strict=True):
            if fed >= len(row.prompt):
                row.commit([token])
        places = [place for place, row in enumerate(active) if not row.is_finished]
        if not places:
            return [row.output for row in rows]
        active = [active[place] for place in places]
        batch.keep([fed] * len(active), places)
        logits = batch.feed(torch.tensor([[row.stream[fed]] for row in active]))
        fed += 1
