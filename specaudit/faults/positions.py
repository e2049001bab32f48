"""Faults in positions: the slots are right, the positions stated are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.vocabulary import Cause
from specaudit.faults.fault import Fault, Group, Injection, Layout
from specaudit.faults.moments import ROW, after_a_move, lasting, once

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from specaudit.faults.fault import Turn


def _shifted(turn: Turn, rows: int | slice, by: int, *, first: int = 0) -> bool:
    """Add `by` to the positions of some rows, from a query on, unless all rows would then have the same."""
    assert turn.position_ids is not None  # noqa: S101 (stated by the decoder)
    changed = turn.position_ids.clone()
    changed[rows, first:] += by
    if bool((changed == changed[0]).all()):
        return False
    turn.position_ids = changed
    return True


def _left_out(turn: Turn) -> bool:
    turn.position_ids = None
    return True


def _changed(turn: Turn, change: Callable[[Tensor], Tensor]) -> bool:
    assert turn.position_ids is not None  # noqa: S101 (stated by the decoder)
    turn.position_ids = change(turn.position_ids.clone())
    return True


def _of_the_longest(positions: Tensor) -> Tensor:
    return positions.max(0, keepdim=True).values.expand_as(positions)


def _all_like_the_first_proposal(positions: Tensor) -> Tensor:
    positions[ROW, 2:] = positions[ROW, 1]
    return positions


def _counting_rejected() -> Injection:
    counted = 0

    def count(turn: Turn) -> bool:
        nonlocal counted
        counted += turn.rejected[ROW]
        return _shifted(turn, ROW, counted)

    return Injection(forward=lasting(count))


FAULTS = (
    Fault(
        name="row-offset",
        group=Group.POSITIONS,
        imitates="One round's positions of a row start from a stale length.",
        causes=(Cause.POSITION_OFFSET,),
        make=lambda: Injection(forward=once(lambda turn: _shifted(turn, ROW, 2))),
    ),
    Fault(
        name="row-offset-from-the-start",
        group=Group.POSITIONS,
        imitates="A row's positions count the padding in front of it.",
        causes=(Cause.POSITION_OFFSET,),
        make=lambda: Injection(forward=lasting(lambda turn: _shifted(turn, ROW, 3), at=0)),
    ),
    Fault(
        name="common-offset",
        group=Group.POSITIONS,
        imitates="After the prefill positions are counted from 1, in every row.",
        causes=(Cause.POSITION_OFFSET,),
        make=lambda: Injection(forward=lasting(lambda turn: _shifted(turn, slice(None), 1), at=1)),
    ),
    Fault(
        name="no-positions",
        group=Group.POSITIONS,
        imitates="No position IDs are passed with a padded batch, and the model numbers the columns.",
        causes=(Cause.POSITIONS_SHARED,),
        make=lambda: Injection(forward=lasting(_left_out, at=0)),
    ),
    Fault(
        name="rounds-without-positions",
        group=Group.POSITIONS,
        imitates="The prefill states positions, the rounds leave them to the model, which counts cache slots.",
        causes=(Cause.POSITIONS_SHARED,),
        make=lambda: Injection(forward=lasting(_left_out)),
    ),
    Fault(
        name="positions-of-longest-row",
        group=Group.POSITIONS,
        imitates="One range of positions, that of the longest row, serves the whole batch.",
        causes=(Cause.POSITIONS_SHARED,),
        make=lambda: Injection(forward=lasting(lambda turn: _changed(turn, _of_the_longest))),
    ),
    Fault(
        name="rejected-tokens-counted",
        group=Group.POSITIONS,
        imitates="A row's positions go on behind its rejected tokens, so that each rejection leaves a gap.",
        causes=(Cause.POSITION_GAP, Cause.POSITION_OFFSET),
        make=_counting_rejected,
        replaced=1.0,
    ),
    Fault(
        name="position-gap",
        group=Group.POSITIONS,
        imitates="A position is left out between the pending token and the first proposal.",
        causes=(Cause.POSITION_GAP,),
        make=lambda: Injection(forward=once(lambda turn: _shifted(turn, ROW, 1, first=1))),
        replaced=0.0,
    ),
    Fault(
        name="position-duplicate",
        group=Group.POSITIONS,
        imitates="The first proposal is given the position of the pending token.",
        causes=(Cause.POSITION_DUPLICATE,),
        make=lambda: Injection(forward=once(lambda turn: _shifted(turn, ROW, -1, first=1))),
        replaced=0.0,
    ),
    Fault(
        name="proposals-share-a-position",
        group=Group.POSITIONS,
        imitates="All proposals are given the position of the first, as siblings in a tree would be.",
        causes=(Cause.POSITION_DUPLICATE,),
        make=lambda: Injection(forward=lasting(lambda turn: _changed(turn, _all_like_the_first_proposal))),
        replaced=0.0,
    ),
    Fault(
        name="offset-after-compaction",
        group=Group.POSITIONS,
        imitates="Slots are moved together and what was dropped is taken off a row's positions as well.",
        causes=(Cause.POSITION_OFFSET,),
        make=lambda: after_a_move(lasting(lambda turn: _shifted(turn, ROW, -2))),
        layouts=(Layout.HOLES,),
        is_compacting=True,
    ),
)
