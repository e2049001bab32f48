"""The canary: one fixed forward, compared bit by bit before and after anybody else's code has run.

Hooks left behind, patched functions, changed buffers, scalars or weights: whatever makes a model compute something else
shows here, and must show before it is blamed on the next decoder or kept as a reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor
    from transformers import PreTrainedModel

LENGTH = 8
"""Tokens in the forward: several, so that attention and positions take part."""


class Canary:
    """Remembers what models compute."""

    def __init__(self, models: Sequence[PreTrainedModel]) -> None:
        """Take the present state of `models` as the right one."""
        self.models = tuple(models)
        self._before = [_logits(model) for model in self.models]

    def is_alive(self) -> bool:
        """Return whether every model still computes the same bits."""
        return all(_is_same(model, before) for model, before in zip(self.models, self._before, strict=True))


def _is_same(model: PreTrainedModel, before: Tensor) -> bool:
    try:
        return torch.equal(_logits(model), before)
    except Exception:  # a model that raises where it did not is not the same
        return False


@torch.no_grad()
def _logits(model: PreTrainedModel) -> Tensor:
    rows = int(model.config.get_text_config().vocab_size)
    ids = torch.arange(1, LENGTH + 1, device=model.device) * 7919 % rows
    logits: Tensor = model(input_ids=ids[None], use_cache=False).logits
    return logits.nan_to_num().clone()
