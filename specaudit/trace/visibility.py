"""What a mask means: which slots a query's attention reaches, as the backend reads it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Visibility:
    """The reading of one mask."""

    visible: Tensor
    """Whether a query reaches a slot, bool [B, q, n]."""

    obstacle: str | None
    """Why the reading is not certain, or None."""


def read_mask(
    mask: Tensor | None, *, batch: int, queries: int, width: int, implementation: str, is_causal: bool
) -> Visibility:
    """Return which of `width` slots each of `queries` queries reaches.

    No mask: SDPA lets one query see all slots, several queries the upper-left triangle; eager masks nothing. Float masks
    are additive: above half of the type's minimum is visible; values between are neither visible nor hidden.
    """
    if mask is None:
        visible = torch.ones(queries, width, dtype=torch.bool)
        if implementation != "eager" and is_causal and queries > 1:
            visible = visible.tril()
        return Visibility(visible=visible.expand(batch, -1, -1), obstacle=None)
    if mask.dim() != 4:
        return Visibility(
            visible=torch.zeros(batch, queries, width, dtype=torch.bool),
            obstacle=f"a mask with {mask.dim()} dimensions is not understood",
        )
    obstacle = None
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
