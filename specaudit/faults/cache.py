"""Faults in the cache: what attention may see is right, what lies there is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from specaudit.core.vocabulary import Cause
from specaudit.faults.fault import IN_PLACE, Fault, Group, Injection, Layout
from specaudit.faults.moments import ROW, after_a_move, once
from specaudit.faults.slots import KEYS, change_layers, column_of, live_columns, put_slots, row_slots

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from torch import Tensor

    from specaudit.faults.fault import Turn

CONTIGUOUS = (Layout.CONTIGUOUS,)


def _in_live_slots(
    alter: Callable[[Tensor, list[int]], None],
    *,
    layers: Callable[[int], Collection[int]] | None = None,
    kinds: Collection[int] = (0, 1),
) -> Injection:
    """Return a fault that alters one row's states [heads, n, width] at its live columns, once."""

    def change(turn: Turn) -> bool:
        columns = live_columns(turn, ROW)
        if not turn.running[ROW] or len(columns) < 4:
            return False
        chosen = None if layers is None else layers(len(turn.cache.layers))
        change_layers(turn.cache, lambda states: alter(states[ROW], columns), layers=chosen, kinds=kinds)
        turn.mark(ROW)
        return True

    return Injection(forward=once(change))


def _shift(states: Tensor, columns: list[int]) -> None:
    states[:, columns[1:]] = states[:, columns[:-1]]


def _shift_to_neighbours(states: Tensor, columns: list[int]) -> None:
    """Give each live column what lies physically before it."""
    states[:, columns] = states[:, [max(0, column - 1) for column in columns]]


def _overwrite(states: Tensor, columns: list[int]) -> None:
    states[:, columns[2]] = states[:, columns[1]]


def _zero(states: Tensor, columns: list[int]) -> None:
    states[:, columns[-2]] = 0


def _cast(states: Tensor, columns: list[int]) -> None:
    states[:, columns] = states[:, columns].to(torch.bfloat16).to(states.dtype)


def _blend(states: Tensor, columns: list[int]) -> None:
    states[:, columns[-2]] = (states[:, columns[-2]] + states[:, columns[-3]]) / 2


def _kept(by: int) -> Injection:
    def change(turn: Turn) -> bool:
        if not turn.running[ROW] or (by > 0 and turn.rejected[ROW] < by):
            return False
        turn.kept[ROW] += by
        turn.mark(ROW)
        return True

    return Injection(cut=once(change))


def _zeroed_tail() -> Injection:
    """Keep one rejected slot visible, and zero it."""
    columns: list[int] = []

    def cut(turn: Turn) -> bool:
        if not turn.running[ROW] or not turn.rejected[ROW]:
            return False
        turn.kept[ROW] += 1
        columns.append(max(turn.kept) - 1)
        return True

    def change(turn: Turn) -> bool:
        if not turn.running[ROW] or not (columns or turn.rejected[ROW]):
            return False
        assert turn.seen is not None  # noqa: S101 (made by the decoder)
        column = columns[0] if columns else turn.old_width - turn.rejected[ROW]
        if not columns:
            turn.seen = turn.seen.clone()
            turn.seen[ROW, column] = True
        change_layers(turn.cache, lambda states: states[ROW, :, column].zero_())  # type: ignore[arg-type]
        turn.mark(ROW)
        return True

    return Injection(cut=once(cut), forward=once(change))


def _stale_slot() -> Injection:
    """Keep what the first rejected draft of a round wrote, and put it where the round after wrote the right token."""
    saved: list[tuple[int, int, list[tuple[Tensor, Tensor]]]] = []  # step, stream index, slot

    def save(turn: Turn) -> None:
        if saved or turn.step < 2 or not turn.running[ROW] or not turn.rejected[ROW]:
            return
        column = turn.cache.width - turn.rejected[ROW]
        saved.append((turn.step, turn.rows[ROW].length - 1, row_slots(turn.cache, ROW, [column])))

    def change(turn: Turn) -> bool:
        if turn.position_ids is not None and not saved:
            save(turn)  # layouts in which nothing moves
        if not saved or turn.step <= saved[0][0] or not turn.running[ROW]:
            return False
        _, index, slot = saved[0]
        column = column_of(turn, ROW, index)
        if column is None:
            return False
        put_slots(turn.cache, ROW, [column], slot)
        turn.mark(ROW)
        return True

    return Injection(before_move=save, forward=once(change))


def _swapped_rows() -> Injection:
    def swap(states: Tensor) -> None:
        states[[ROW, ROW + 1]] = states[[ROW + 1, ROW]]

    def change(turn: Turn) -> bool:
        if not (turn.running[ROW] and turn.running[ROW + 1]):
            return False
        change_layers(turn.cache, swap)
        turn.mark(ROW)
        turn.mark(ROW + 1)
        return True

    return Injection(forward=once(change))


def _foreign_slot() -> Injection:
    def change(turn: Turn) -> bool:
        own, other = live_columns(turn, ROW), live_columns(turn, ROW + 1)
        if not turn.running[ROW]:
            return False
        put_slots(turn.cache, ROW, [own[-2]], row_slots(turn.cache, ROW + 1, [other[-2]]))
        turn.mark(ROW)
        return True

    return Injection(forward=once(change))


def _whole_cache_cast() -> Injection:
    def cast(states: Tensor) -> None:
        states.copy_(states.to(torch.bfloat16).to(states.dtype))

    def change(turn: Turn) -> bool:
        change_layers(turn.cache, cast)
        for place in range(len(turn.rows)):
            turn.mark(place)
        return True

    return Injection(forward=once(change))


def _unmoved(*, layers: Callable[[int], Collection[int]], rows: Collection[int] | None = None) -> Injection:
    """Return a fault that leaves some layers of some rows where they were when all is moved, cropped to the new width."""
    before: list[tuple[Tensor, Tensor]] = []

    def save(turn: Turn) -> None:
        before[:] = [(keys.clone(), values.clone()) for keys, values in turn.cache.layers]

    def change(turn: Turn) -> bool:
        width = turn.old_width
        if not before:
            return False
        chosen = range(len(turn.rows)) if rows is None else rows
        moved = [
            place
            for place in chosen
            if turn.running[place] and not torch.equal(before[0][0][place][:, :width], turn.cache.layers[0][0][place])
        ]
        seen_apart = [place for place in moved if _differs(turn, place, before[0][0][place][:, :width])]
        if not seen_apart:
            return False
        for place, pair in enumerate(turn.cache.layers):
            if place in layers(len(before)):
                states = [each.clone() for each in pair]
                for state, old in zip(states, before[place], strict=True):
                    for row in chosen:
                        state[row] = old[row][:, :width]
                turn.cache.set_layer(place, *states)
        for place in seen_apart:
            turn.mark(place)
        return True

    return Injection(before_move=save, forward=once(change))


def _differs(turn: Turn, row: int, old: Tensor) -> bool:
    """Return whether a row sees a slot that holds something else than what lies there now."""
    columns = live_columns(turn, row)
    return not torch.equal(old[:, columns], turn.cache.layers[0][0][row][:, columns])


def _one_too_far() -> Injection:
    """Return a fault that moves a row one slot too far to the right: padding comes in, the last token is lost."""

    def right(states: Tensor, columns: list[int]) -> None:
        states[:, 1:] = states[:, :-1].clone()

    return after_a_move(_in_live_slots(right).forward)


def _refilled() -> Injection:
    def note(turn: Turn) -> None:
        assert turn.seen is not None  # noqa: S101 (made by the decoder)
        for place in range(len(turn.rows)):
            if turn.step and not turn.kept[place] and bool(turn.seen[place, : turn.old_width].any()):
                turn.mark(place)

    return Injection(forward=note, clears_places=False)


def _middle(count: int) -> Collection[int]:
    return (count // 2,)


def _last_half(count: int) -> Collection[int]:
    return range((count + 1) // 2, count)


def _all(count: int) -> Collection[int]:
    return range(count)


FAULTS = (
    Fault(
        name="stale-slot-kept",
        group=Group.CACHE,
        imitates="The cut after a rejection leaves one rejected slot too many.",
        causes=(Cause.STALE_KV,),
        make=lambda: _kept(1),
        layouts=CONTIGUOUS,
        replaced=1.0,
    ),
    Fault(
        name="cut-too-short",
        group=Group.CACHE,
        imitates="The cut after a rejection takes an accepted slot with it.",
        causes=(Cause.SHIFTED_KV,),
        make=lambda: _kept(-1),
        layouts=CONTIGUOUS,
    ),
    Fault(
        name="stale-slot-not-overwritten",
        group=Group.CACHE,
        imitates="The slot of a rejected draft is not overwritten by the token that took its place.",
        causes=(Cause.STALE_KV,),
        make=_stale_slot,
        replaced=1.0,
    ),
    Fault(
        name="rejected-tail-zeroed",
        group=Group.CACHE,
        imitates="Rejected slots are zeroed instead of masked.",
        causes=(Cause.UNWRITTEN_KV,),
        make=_zeroed_tail,
        replaced=1.0,
    ),
    Fault(
        name="slot-zeroed",
        group=Group.CACHE,
        imitates="Clearing a rejected tail zeroes one accepted slot.",
        causes=(Cause.UNWRITTEN_KV,),
        make=lambda: _in_live_slots(_zero),
    ),
    Fault(
        name="rows-swapped",
        group=Group.CACHE,
        imitates="Rows were sorted and the cache was not.",
        causes=(Cause.FOREIGN_KV,),
        make=_swapped_rows,
    ),
    Fault(
        name="foreign-slot-copied",
        group=Group.CACHE,
        imitates="A gather with a wrong row index takes one slot from the neighbour.",
        causes=(Cause.FOREIGN_KV,),
        make=_foreign_slot,
    ),
    Fault(
        name="slot-overwritten",
        group=Group.CACHE,
        imitates="A gather with an index twice puts one token into two slots, over another.",
        causes=(Cause.SHIFTED_KV,),
        make=lambda: _in_live_slots(_overwrite),
    ),
    Fault(
        name="row-moved-too-far",
        group=Group.CACHE,
        imitates="A row is moved one slot too far, and its last token out of sight.",
        causes=(Cause.SHIFTED_KV,),
        make=_one_too_far,
        layouts=CONTIGUOUS,
    ),
    Fault(
        name="row-not-moved",
        group=Group.CACHE,
        imitates="One row is left where it was when the others are realigned.",
        causes=(Cause.SHIFTED_KV,),
        make=lambda: _unmoved(layers=_all, rows=(ROW,)),
        layouts=CONTIGUOUS,
    ),
    Fault(
        name="last-layers-not-moved",
        group=Group.CACHE,
        imitates="Only the first half of the layers is realigned.",
        causes=(Cause.LAYER_MISMATCH,),
        make=lambda: _unmoved(layers=_last_half),
        layouts=CONTIGUOUS,
    ),
    Fault(
        name="middle-layer-shifted",
        group=Group.CACHE,
        imitates="In one middle layer a row's slots lie one place further on.",
        causes=(Cause.LAYER_MISMATCH,),
        make=lambda: _in_live_slots(_shift, layers=_middle),
    ),
    Fault(
        name="keys-without-values",
        group=Group.CACHE,
        imitates="Keys are moved and values are not.",
        causes=(Cause.LAYER_MISMATCH,),
        make=lambda: _in_live_slots(_shift, kinds=(KEYS,)),
    ),
    Fault(
        name="keys-cast",
        group=Group.CACHE,
        imitates="A row's keys make a round trip through bfloat16.",
        causes=(Cause.UNWRITTEN_KV,),
        make=lambda: _in_live_slots(_cast, kinds=(KEYS,)),
    ),
    Fault(
        name="cache-cast",
        group=Group.CACHE,
        imitates="The cache is parked in bfloat16 between two rounds.",
        causes=(Cause.UNWRITTEN_KV,),
        make=_whole_cache_cast,
    ),
    Fault(
        name="slots-blended",
        group=Group.CACHE,
        imitates="A slot is interpolated from two where it should be moved.",
        causes=(Cause.UNWRITTEN_KV,),
        make=lambda: _in_live_slots(_blend),
    ),
    Fault(
        name="compacted-too-far",
        group=Group.CACHE,
        imitates="Compaction gives each slot of a row what lay before its right one.",
        causes=(Cause.SHIFTED_KV,),
        make=lambda: after_a_move(_in_live_slots(_shift_to_neighbours).forward),
        layouts=(Layout.HOLES,),
        is_compacting=True,
    ),
    Fault(
        name="refilled-place-not-cleared",
        group=Group.CACHE,
        imitates="A prompt takes the place of a finished row and sees what that row left.",
        causes=(Cause.FOREIGN_KV,),
        make=_refilled,
        layouts=IN_PLACE,
        places=2,
    ),
)
