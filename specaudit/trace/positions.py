"""The positions in effect: read off the call of the module that consumes them, whatever the caller passed or left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence


def rotary_positions(arguments: tuple[Any, ...], options: dict[str, Any]) -> Tensor | None:
    """Return the positions that a rotary embedding is called with."""
    if "position_ids" in options:
        return options["position_ids"]  # type: ignore[no-any-return]
    return arguments[1] if len(arguments) > 1 and isinstance(arguments[1], Tensor) else None


def table_positions(arguments: tuple[Any, ...], options: dict[str, Any]) -> Tensor | None:
    """Return the positions that a learned table is called with."""
    return arguments[0] if arguments else options.get("input")


def counted_positions(arguments: tuple[Any, ...], options: dict[str, Any]) -> Tensor | None:
    """Return the positions that OPT's table uses: given, or counted in the mask behind the cache."""
    given = options.get("position_ids", arguments[2] if len(arguments) > 2 else None)
    if given is not None:
        return given  # type: ignore[no-any-return]
    mask = options.get("attention_mask", arguments[0] if arguments else None)
    if mask is None:
        return None
    past = arguments[1] if len(arguments) > 1 else options.get("cache_length", options.get("past_key_values_length", 0))
    return (mask.cumsum(1) * mask - 1).long()[:, past:]  # type: ignore[no-any-return]


def agreed_positions(seen: Sequence[Tensor], shape: tuple[int, ...]) -> tuple[np.ndarray | None, str | None]:
    """Return the positions of a step, int64 [B, q], or why they are not known."""
    if not seen:
        return None, "the positions used were not seen"
    if any(positions.dim() > 2 for positions in seen):
        return None, "positions with more than one axis are not understood"
    full = [np.broadcast_to(np.atleast_2d(positions.cpu().numpy()), shape) for positions in seen]
    if any(not np.array_equal(full[0], other) for other in full[1:]):
        return None, "layers used different positions in one step"
    return full[0], None
