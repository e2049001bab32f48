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
    window = _window(model)
    if window is None:
        return seen.long()
    width = seen.shape[1]
    columns = torch.arange(width, device=seen.device)
    own = columns[-count:]
    before = columns[None, :] <= own[:, None]  # [q, n + q]
    is_seen = (seen[:, None, :] & before)[:, None]  # [B, 1, q, n + q]
    distance = indices[:, -count:, None] - indices[:, None, :]
    in_window = is_seen & (distance < window)[:, None]
    if "full_attention" in (getattr(model.config, "layer_types", None) or []):
        return {"full_attention": is_seen, "sliding_attention": in_window}
    return in_window


def _window(model: PreTrainedModel) -> int | None:
    config: Any = model.config.get_text_config()
    types = getattr(config, "layer_types", None)
    if types is not None and "sliding_attention" not in types:
        return None
    window = getattr(config, "sliding_window", None)
    return None if window is None or not getattr(config, "use_sliding_window", True) else int(window)
