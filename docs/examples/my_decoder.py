"""A batched speculative decoder in one file, to be audited: `--decoder docs/examples/my_decoder.py:decode`.

Cached keys and values never move. Every row has its slots in the columns where they were written; those of rejected
proposals stay, hidden by the mask, and positions are stated in each forward, since the number of slots is no longer the
number of tokens. Layers with a sliding window count slots, hidden ones too, so this is for models without one.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache


class Rows:
    """A model with the cache of a batch of rows, and the mask that says which slots hold a row's own tokens."""

    def __init__(self, model: Any, prompts: list[list[int]], pad_token_id: int) -> None:
        """Start with prompts of different lengths, padded on the left; padding is known by length, not by its id."""
        width = max(map(len, prompts))
        self.model = model
        self.cache = DynamicCache()
        parameters = signature(type(model).forward).parameters
        self.cache_argument = "cache" if "cache" in parameters else "past_key_values"  # renamed by transformers
        self.mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])  # [B, n]
        self.padded = torch.tensor([[pad_token_id] * (width - len(prompt)) + prompt for prompt in prompts])

    def prefill(self) -> Tensor:
        """Feed the prompts and return the logits after them, [B, vocabulary]."""
        positions = (self.mask.cumsum(1) - 1).clamp(min=0)
        return self._forward(self.padded, positions)[:, -1]

    def feed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Feed a block [B, q] and return its logits [B, q, vocabulary]."""
        self.mask = torch.cat([self.mask, torch.ones_like(tokens)], dim=1)
        return self._forward(tokens, positions)

    def keep(self, is_kept: Tensor) -> None:
        """Hide those of the last slots that are not kept, bool [B, q]."""
        self.mask[:, -is_kept.shape[1] :] = is_kept.long()

    def _forward(self, tokens: Tensor, positions: Tensor) -> Tensor:
        device = self.model.device
        output = self.model(
            input_ids=tokens.to(device),
            attention_mask=self.mask.to(device),
            position_ids=positions.to(device),
            use_cache=True,
            **{self.cache_argument: self.cache},
        )
        logits: Tensor = output.logits.cpu()
        return logits


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
    """Return the greedy continuation of each prompt, drafting `draft_tokens` tokens a round."""
    outputs: list[list[int]] = [[] for _ in prompts]

    def is_finished(output: list[int]) -> bool:
        return len(output) >= max_new_tokens or (bool(output) and output[-1] in eos_token_ids)

    def commit(output: list[int], tokens: list[int]) -> None:
        for token in tokens:
            if not is_finished(output):
                output.append(token)

    target_rows, draft_rows = (Rows(model, prompts, pad_token_id) for model in (target, draft))
    pending = target_rows.prefill().argmax(-1, keepdim=True)  # [B, 1]: decided, not yet fed
    draft_rows.prefill()
    for output, (token,) in zip(outputs, pending.tolist(), strict=True):
        commit(output, [token])

    lengths = torch.tensor([[len(prompt)] for prompt in prompts])  # [B, 1]: tokens that each row has fed for good
    offsets = torch.arange(draft_tokens + 1)
    while not all(map(is_finished, outputs)):
        block = pending
        for offset in range(draft_tokens + 1):  # the last proposal is fed too, so that both caches hold the same tokens
            logits = draft_rows.feed(block[:, -1:], lengths + offset)
            block = torch.cat([block, logits.argmax(-1)], dim=1)
        block = block[:, :-1]  # [B, K + 1]: the pending token and K proposals

        predictions = target_rows.feed(block, lengths + offsets).argmax(-1)  # [B, K + 1]
        is_accepted = (block[:, 1:] == predictions[:, :-1]).long().cumprod(1)  # [B, K]
        accepted = is_accepted.sum(1, keepdim=True)  # [B, 1]
        is_running = torch.tensor([[not is_finished(output)] for output in outputs])
        is_kept = (offsets <= accepted) & is_running
        target_rows.keep(is_kept)
        draft_rows.keep(is_kept)
        for row, output in enumerate(outputs):
            commit(output, predictions[row, : int(accepted[row]) + 1].tolist())  # accepted proposals and the bonus
        pending = predictions.gather(1, accepted)
        lengths = lengths + is_kept.sum(1, keepdim=True)
    return outputs
