"""What most variants share: a left-padded batch with its cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from specaudit.batch.cache import Feeder, SlotCache, realigned_slots
from specaudit.batch.padding import content_mask, following_positions, left_pad

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor
    from transformers import PreTrainedModel


class Rectangle:
    """A left-padded batch: mask and positions follow from the rows' lengths."""

    def __init__(self, target: PreTrainedModel, pad_token_id: int) -> None:
        """Start with an empty cache of `target`."""
        self.feeder = Feeder(target, SlotCache(target))
        self.pad_token_id = pad_token_id
        self.lengths = torch.empty(0, dtype=torch.long)  # [B]

    def prefill(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Start with whole prompts; return logits [B, L, vocabulary], each row's own last one at the end."""
        batch = left_pad(prompts, pad_token_id=self.pad_token_id, device=self.feeder.model.device)
        self.lengths = batch.lengths
        return self.feeder.feed(batch.input_ids, attention_mask=batch.attention_mask, position_ids=batch.position_ids)

    def feed(self, blocks: Tensor) -> Tensor:
        """Feed a block to each row, int64 [B, q]; return its logits [B, q, vocabulary]."""
        count = blocks.shape[1]
        logits = self.feeder.feed(
            blocks,
            attention_mask=content_mask(self.lengths + count, self.feeder.cache.width + count),
            position_ids=following_positions(self.lengths, count),
        )
        self.lengths = self.lengths + count
        return logits

    def keep(self, kept: Sequence[int], rows: Sequence[int] | None = None) -> None:
        """Go on with `rows` (all, or some, in this order), the first `kept` tokens of each."""
        chosen = torch.tensor(range(len(self.lengths)) if rows is None else rows)
        lengths, tokens = self.lengths[chosen], torch.tensor(kept)
        slots = realigned_slots(lengths, tokens, width=self.feeder.cache.width)
        if slots is None:
            slots = torch.arange(int(tokens.max())).expand(len(chosen), -1)
        self.feeder.cache.gather(slots, chosen)
        self.lengths = tokens
