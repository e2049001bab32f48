"""What a mask means: which slots a query's attention reaches, as the backend reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

UNDERSTOOD = ("sdpa", "eager")
"""Attention implementations whose masks are read; others align or window by rules of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visibility:
    """The reading of one mask."""

    visible: Tensor
    """Whether a query reaches a slot, bool [B, q, n]."""

    obstacle: str | None
    """Why the reading is not certain, or None."""


def read_mask(mask: Any, *, batch: int, queries: int, width: int, implementation: str, is_causal: bool) -> Visibility:
    """Return which of `width` slots each of `queries` queries reaches.

    No mask: SDPA lets one query see all slots, several queries the upper-left triangle; eager masks nothing. Float masks
    are additive: above half of the type's minimum is visible; values between are neither visible nor hidden. What this
    does not understand is named in `obstacle`, and the slots are then of no account.
    """
    obstacle = _obstacle(mask, implementation)
    if obstacle is not None:
        return Visibility(visible=torch.zeros(batch, queries, width, dtype=torch.bool), obstacle=obstacle)
    if mask is None:
        visible = torch.ones(queries, width, dtype=torch.bool)
        if implementation != "eager" and is_causal and queries > 1:
            visible = visible.tril()
        return Visibility(visible=visible.expand(batch, -1, -1), obstacle=None)
    mask = mask.expand(-1, -1, queries if mask.shape[2] == 1 else -1, width if mask.shape[3] == 1 else -1)
    seen = mask[:, :, -queries:, :width]
    if seen.dtype != torch.bool:
        limit = torch.finfo(seen.dtype).min / 2
        if bool(((seen != 0) & (seen > limit)).any()):
            obstacle = "a mask that weighs slots instead of hiding them is not understood"
        seen = seen > limit
    if seen.shape[1] > 1 and not bool((seen == seen[:, :1]).all()):
        obstacle = "a mask that differs between heads is not understood"
    seen = seen[:, 0].expand(batch, -1, -1)
    if seen.shape[-1] < width:  # columns that the mask lacks: attention itself will raise
        seen = torch.nn.functional.pad(seen, (0, width - seen.shape[-1]))
    return Visibility(visible=seen, obstacle=obstacle)


def _obstacle(mask: Any, implementation: str) -> str | None:
    """Return why a mask cannot be read at all, or None."""
    if implementation not in UNDERSTOOD:
        return f"what '{implementation}' attention sees is not understood; try --attn sdpa"
    if mask is None:
        return None
    if not isinstance(mask, Tensor):
        return f"a mask of type {type(mask).__name__} is not understood"
    if mask.dim() != 4:
        return f"a mask with {mask.dim()} dimensions is not understood"
    if mask.dtype == torch.bool and implementation == "eager":
        return "eager attention adds a mask of booleans instead of hiding by it"
    if mask.dtype != torch.bool and not mask.is_floating_point():
        return f"a mask of {str(mask.dtype).removeprefix('torch.')} is not understood"
    return None
