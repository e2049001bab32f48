"""BSP (Su et al. 2023) as Zhang et al. describe it: the masking baseline, its published faults included.

Rejected tokens stay in the cache and are masked; positions are left to the model, which counts cache slots and so counts
padding and rejected tokens too. On a model with rotary or learned positions the gaps corrupt the output, usually into a
repeated token. Written from the description, to be caught: do not use it to decode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from specaudit.batch.cache import Feeder, SlotCache
from specaudit.batch.padding import left_pad
from specaudit.decoders.acceptance import accepted_counts, committed_tokens
from specaudit.decoders.choice import token_choice
from specaudit.decoders.drafting import Drafter, open_session
from specaudit.decoders.rows import start_rows

if TYPE_CHECKING:
    from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase


@torch.no_grad()
def decode(
    target: PreTrainedModel,
    draft: PreTrainedModel | Drafter,
    tokenizer: PreTrainedTokenizerBase | None,
    prompts: list[list[int]],
    *,
    max_new_tokens: int,
    draft_tokens: int,
    eos_token_ids: set[int],
    pad_token_id: int,
    generation_config: GenerationConfig | None = None,
) -> list[list[int]]:
    """Decode all prompts in one batch; `tokenizer` is not used."""
    session = open_session(draft, pad_token_id=pad_token_id, device=target.device)
    feeder = Feeder(target, SlotCache(target))
    choice = token_choice(target, generation_config, max_new_tokens=max_new_tokens, eos_token_ids=eos_token_ids)
    rows = start_rows(prompts, budget=max_new_tokens, eos_token_ids=eos_token_ids)
    batch = left_pad(prompts, pad_token_id=pad_token_id, device=target.device)
    mask = batch.attention_mask
    logits = feeder.feed(batch.input_ids, attention_mask=mask, position_ids=None)  # fault: positions count padding
    bonus = choice.choose(logits[:, -1:], rows)[:, 0]  # [B]
    for row, token in zip(rows, bonus.tolist(), strict=True):
        row.commit([token])

    fed = torch.arange(draft_tokens + 1, device=target.device)
    while not all(row.is_finished for row in rows):
        proposals = session.propose(rows, draft_tokens)  # [B, K]
        block = torch.cat([bonus[:, None], proposals], dim=1)  # [B, K + 1]
        logits = feeder.feed(  # fault: positions count padding and rejected slots
            block, attention_mask=torch.cat([mask, torch.ones_like(block)], dim=1), position_ids=None
        )
        predictions = choice.choose(logits, rows, proposals)  # [B, K + 1]
        accepted = accepted_counts(proposals, predictions)
        for row, tokens in zip(rows, committed_tokens(proposals, predictions, accepted), strict=True):
            row.commit(tokens)
        bonus = predictions.gather(1, accepted[:, None])[:, 0]
        mask = torch.cat([mask, (fed <= accepted[:, None]).long()], dim=1)  # rejected slots stay, masked
    return [row.output for row in rows]
