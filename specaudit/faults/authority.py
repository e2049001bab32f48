"""The truth for every decoder: an uncached, unpadded forward in float64, one token at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from torch import Tensor
    from transformers import PreTrainedModel


@torch.no_grad()
def uncached_greedy(
    model: PreTrainedModel, prompt: Sequence[int], *, max_new_tokens: int, eos_token_ids: Collection[int] = ()
) -> list[int]:
    """Return the greedy continuation of one prompt, each token from a whole forward without a cache."""
    ids = list(prompt)
    for _ in range(max_new_tokens):
        logits = model(input_ids=torch.tensor([ids], device=model.device), use_cache=False).logits
        ids.append(int(logits[0, -1].argmax()))
        if ids[-1] in eos_token_ids:
            break
    return ids[len(prompt) :]


def until_eos(tokens: Sequence[int], eos_token_ids: Collection[int]) -> list[int]:
    """Return `tokens` up to and including the first EOS."""
    for place, token in enumerate(tokens):
        if token in eos_token_ids:
            return list(tokens[: place + 1])
    return list(tokens)


@torch.no_grad()
def uncached_logits(model: PreTrainedModel, prompt: Sequence[int], output: Sequence[int]) -> Tensor:
    """Return the logits that choose each token of an output, [T, vocabulary], from one forward without a cache."""
    ids = torch.tensor([[*prompt, *output]], device=model.device)
    logits: Tensor = model(input_ids=ids, use_cache=False).logits[0]
    return logits[len(prompt) - 1 : -1]
