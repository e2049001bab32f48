"""Padding: ids, masks and positions of rows of different lengths; left for decoding, right for a forward over all.

Padding is known by length, never by token value: a pad token that is also EOS, BOS or an ordinary token is harmless.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftPadded:
    """Rows flush with the right edge of a rectangle."""

    input_ids: Tensor
    """Token ids, int64 [B, L]."""

    attention_mask: Tensor
    """1 where a column holds a row's own token, int64 [B, L]."""

    position_ids: Tensor
    """Number of the row's own tokens before the column, 0 in padding, int64 [B, L]."""

    lengths: Tensor
    """Number of tokens a row, int64 [B]."""


def left_pad(rows: Sequence[Sequence[int]], *, pad_token_id: int, device: torch.device) -> LeftPadded:
    """Return `rows` (each at least one token long) left-padded to the longest."""
    lengths = torch.tensor([len(row) for row in rows], device=device)
    width = int(lengths.max())
    filled = [[pad_token_id] * (width - len(row)) + list(row) for row in rows]
    mask = content_mask(lengths, width)
    return LeftPadded(
        input_ids=torch.tensor(filled, device=device),
        attention_mask=mask,
        position_ids=(mask.cumsum(-1) - 1).clamp(min=0),
        lengths=lengths,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RightPadded:
    """Rows flush with the left edge of a rectangle."""

    input_ids: Tensor
    """Token ids, int64 [B, L]."""

    attention_mask: Tensor
    """1 where a column holds a row's own token, int64 [B, L]."""

    position_ids: Tensor
    """Column of each token, 0 to L - 1 in every row, padding included, int64 [B, L]."""


def right_pad(rows: Sequence[Sequence[int]], *, pad_token_id: int, device: torch.device) -> RightPadded:
    """Return `rows` (each at least one token long) right-padded to the longest."""
    lengths = torch.tensor([len(row) for row in rows], device=device)
    width = int(lengths.max())
    filled = [list(row) + [pad_token_id] * (width - len(row)) for row in rows]
    columns = torch.arange(width, device=device)
    return RightPadded(
        input_ids=torch.tensor(filled, device=device),
        attention_mask=(columns < lengths[:, None]).long(),
        position_ids=columns.expand(len(rows), width).contiguous(),
    )


def content_mask(lengths: Tensor, width: int) -> Tensor:
    """Return the mask of left-padded rows: 1 in the last `lengths[b]` of `width` columns, int64 [B, width]."""
    columns = torch.arange(width, device=lengths.device)
    return (columns >= (width - lengths)[:, None]).long()


def following_positions(lengths: Tensor, count: int) -> Tensor:
    """Return the positions of the `count` tokens that follow rows of `lengths` tokens, int64 [B, count]."""
    return lengths[:, None] + torch.arange(count, device=lengths.device)
