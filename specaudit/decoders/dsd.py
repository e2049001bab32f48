"""DSD (Yan et al.) as Zhang et al. describe it: the dynamic-padding baseline, its published faults included.

Three faults. The token after the accepted proposals is the draft's own next one, which the target has just rejected; after
a full acceptance there is none. New tokens are appended and the batch is padded on the left again, but never unpadded, so
its padding only grows. And neither model gets a mask or positions: padding is attended to and counted. The first alone
spoils batch 1, where nothing is padded: the output is the draft's. As published, every round reads the whole rectangle
again, without a cache across rounds. Stop rules are those of every decoder here, and finished rows stay in the batch, so
that these faults alone are seen. Written from the description, to be caught: do not use it to decode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from specaudit.batch.cache import Feeder, SlotCache
from specaudit.batch.padding import left_pad
from specaudit.decoders.acceptance import accepted_counts
from specaudit.decoders.choice import token_choice
from specaudit.decoders.rows import start_rows

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase


@torch.no_grad()
def decode(
    target: PreTrainedModel,
    draft: PreTrainedModel,
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
    choice = token_choice(target, generation_config, max_new_tokens=max_new_tokens, eos_token_ids=eos_token_ids)
    rows = start_rows(prompts, budget=max_new_tokens, eos_token_ids=eos_token_ids)
    sequences = prompts
    while not all(row.is_finished for row in rows):
        input_ids = left_pad(sequences, pad_token_id=pad_token_id, device=target.device).input_ids  # [B, L]
        proposals = _proposals(draft, input_ids, draft_tokens)  # [B, K]
        logits = _unmasked(target).feed(
            torch.cat([input_ids, proposals], dim=1), attention_mask=None, position_ids=None
        )
        predictions = choice.choose(logits[:, input_ids.shape[1] - 1 :], rows, proposals)  # [B, K + 1]
        accepted = accepted_counts(proposals, predictions)
        committed = [  # fault: the last of them is the proposal that was rejected
            tokens[: count + 1] for tokens, count in zip(proposals.tolist(), accepted.tolist(), strict=True)
        ]
        for row, tokens in zip(rows, committed, strict=True):
            row.commit(tokens)
        sequences = [  # fault: appended to rows that keep their padding
            padded + tokens for padded, tokens in zip(input_ids.tolist(), committed, strict=True)
        ]
    return [row.output for row in rows]


def _proposals(draft: PreTrainedModel, input_ids: Tensor, count: int) -> Tensor:
    """Return the draft's greedy continuation of a padded rectangle, int64 [B, count]."""
    feeder, block, tokens = _unmasked(draft), input_ids.to(draft.device), []
    for _ in range(count):
        block = feeder.feed(block, attention_mask=None, position_ids=None)[:, -1:].argmax(-1)  # [B, 1]
        tokens.append(block)
    return torch.cat(tokens, dim=1).to(input_ids.device)


def _unmasked(model: PreTrainedModel) -> Feeder:
    """Return a feeder with an empty cache; fault: fed without mask and positions, the model attends to padding."""
    return Feeder(model, SlotCache(model))
