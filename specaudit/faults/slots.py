"""Reaching into a cache: the slots of one row, in all layers or some."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from torch import Tensor

    from specaudit.batch.cache import SlotCache
    from specaudit.faults.fault import Turn

KEYS, VALUES = 0, 1
"""Places of keys and values in a layer."""


def change_layers(
    cache: SlotCache,
    change: Callable[[Tensor], None],
    *,
    layers: Collection[int] | None = None,
    kinds: Collection[int] = (KEYS, VALUES),
) -> None:
    """Let `change` alter copies of keys and values [B, heads, n, width], and put them into the cache."""
    for place, pair in enumerate(cache.layers):
        if layers is not None and place not in layers:
            continue
        states = [each.clone() if kind in kinds else each for kind, each in enumerate(pair)]
        for kind in kinds:
            change(states[kind])
        cache.set_layer(place, *states)


def live_columns(turn: Turn, row: int) -> list[int]:
    """Return the columns of the cache that a row sees, in order; those of this forward are not among them."""
    assert turn.seen is not None  # noqa: S101 (made by the decoder)
    columns: list[int] = turn.seen[row, : turn.old_width].nonzero()[:, 0].tolist()
    return columns


def column_of(turn: Turn, row: int, index: int) -> int | None:
    """Return the visible column that should hold a token of a row's stream, or None."""
    assert turn.indices is not None  # noqa: S101 (made by the decoder)
    return next((column for column in live_columns(turn, row) if int(turn.indices[row, column]) == index), None)


def row_slots(cache: SlotCache, row: int, columns: list[int]) -> list[tuple[Tensor, Tensor]]:
    """Return copies of a row's slots in every layer, [heads, m, width] each."""
    return [(keys[row][:, columns].clone(), values[row][:, columns].clone()) for keys, values in cache.layers]


def put_slots(cache: SlotCache, row: int, columns: list[int], slots: list[tuple[Tensor, Tensor]]) -> None:
    """Write slots that `row_slots` returned into columns of a row."""
    for place, (pair, new) in enumerate(zip(cache.layers, slots, strict=True)):
        states = [each.clone() for each in pair]
        for each, slot in zip(states, new, strict=True):
            each[row][:, columns] = slot
        cache.set_layer(place, *states)
