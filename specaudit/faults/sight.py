"""What a row's queries may see, as a mask that the model understands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


def has_windows(model: PreTrainedModel) -> bool:
    """Return whether some layer of the model sees the last slots only."""
    return _window(model) is not None


def attention_mask(model: PreTrainedModel, seen: Tensor, indices: Tensor, *, count: int) -> Any:
    """Return the mask for a block of `count` queries a row, behind the slots before it.

    `seen` is bool [B, n + q], `indices` the place in its row's stream of what each slot holds, -1 for padding. Two
    dimensions are enough where no layer has a window; else each query is told what it sees, by places and not by columns,
    since slots that were rejected stand between those of a row.
    """
    if not has_windows(model):
        return seen.long()
    is_seen, in_window = (mask[:, None] for mask in sights(model, seen, indices, count=count))
    if _has_full_layers(model):
        return {"full_attention": is_seen, "sliding_attention": in_window}
    return in_window


def sights(model: PreTrainedModel, seen: Tensor, indices: Tensor, *, count: int) -> tuple[Tensor, Tensor]:
    """Return what each query of a block sees without a window and within the model's, bool [B, q, n + q] each."""
    columns = torch.arange(seen.shape[1], device=seen.device)
    before = columns[None, :] <= columns[-count:, None]  # [q, n + q]
    is_seen = seen[:, None, :] & before
    window = _window(model)
    if window is None:
        return is_seen, is_seen
    return is_seen, is_seen & (indices[:, -count:, None] - indices[:, None, :] < window)


def rows_apart(model: PreTrainedModel, one: Tensor, other: Tensor, indices: Tensor, *, count: int) -> Tensor:
    """Return the rows in which two masks, bool [B, n + q], let a query of some layer see other slots, bool [B]."""
    pairs = zip(sights(model, one, indices, count=count), sights(model, other, indices, count=count), strict=True)
    without, within = ((left != right).any(2).any(1) for left, right in pairs)
    return without if _has_full_layers(model) or not has_windows(model) else within


def _has_full_layers(model: PreTrainedModel) -> bool:
    return "full_attention" in (getattr(model.config, "layer_types", None) or [])


def _window(model: PreTrainedModel) -> int | None:
    config: Any = model.config.get_text_config()
    types = getattr(config, "layer_types", None)
    if types is not None and "sliding_attention" not in types:
        return None
    window = getattr(config, "sliding_window", None)
    return None if window is None or not getattr(config, "use_sliding_window", True) else int(window)
