"""The reference: batch-1 greedy decoding, its own slow and obvious loop.

No padding, no batch, no mask to get wrong: one token a forward, its position stated, argmax of the raw logits. Where
those are NaN nothing can be compared, and it says so: an argmax of NaN is a token like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from specaudit.batch.cache import Feeder, SlotCache
from specaudit.decoders.choice import token_choice
from specaudit.decoders.rows import start_rows

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase


class NanLogitsError(ArithmeticError):
    """The target computed logits that are not numbers."""


@torch.no_grad()
def decode(
    target: PreTrainedModel,
    draft: Any,
    tokenizer: PreTrainedTokenizerBase | None,
    prompts: list[list[int]],
    *,
    max_new_tokens: int,
    draft_tokens: int,
    eos_token_ids: set[int],
    pad_token_id: int,
    generation_config: GenerationConfig | None = None,
) -> list[list[int]]:
    """Decode each prompt on its own; `draft`, `tokenizer`, `draft_tokens` and `pad_token_id` are not used.

    Raises NanLogitsError where the target's logits are NaN.
    """
    choice = token_choice(target, generation_config, max_new_tokens=max_new_tokens, eos_token_ids=eos_token_ids)
    rows = start_rows(prompts, budget=max_new_tokens, eos_token_ids=eos_token_ids)
    for row in rows:
        feeder = Feeder(target, SlotCache(target))
        block = list(row.prompt)
        while not row.is_finished:
            input_ids = torch.tensor([block], device=target.device)
            positions = torch.arange(row.length - len(block), row.length, device=target.device)[None]
            logits = feeder.feed(input_ids, attention_mask=None, position_ids=positions)[:, -1:]
            _check_numbers(logits, len(row.output))
            block = choice.choose(logits, [row])[0].tolist()
            row.commit(block)
    return [row.output for row in rows]


def _check_numbers(logits: Tensor, place: int) -> None:
    if bool(logits.isnan().any()):
        raise NanLogitsError(f"the target's logits for output token {place} are NaN; try another --dtype")
