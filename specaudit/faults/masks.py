"""Faults in masks: the cache is right, what a row may see of it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from specaudit.core.vocabulary import Cause
from specaudit.faults.fault import IN_PLACE, Fault, Group, Injection
from specaudit.faults.moments import ROW, lasting, once

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from specaudit.faults.fault import Turn

    Choice = Callable[[Turn, Tensor], Tensor]
    """From a turn and the mask of one row, bool [n + q], to the columns of it that are changed."""


def _made(is_seen: bool, choice: Choice, rows: tuple[int, ...] = (ROW,)) -> Callable[[Turn], bool]:
    """Return a change that makes the chosen columns of some rows visible or invisible, where there are any."""

    def change(turn: Turn) -> bool:
        assert turn.seen is not None  # noqa: S101 (made by the decoder)
        seen = turn.seen.clone()
        for row in rows:
            seen[row, choice(turn, turn.seen[row])] = is_seen
        is_made = bool((seen != turn.seen).any())
        turn.seen = seen
        return is_made

    return change


def _all_rows(turn: Turn) -> bool:
    assert turn.seen is not None  # noqa: S101 (made by the decoder)
    turn.seen = turn.seen.new_ones(turn.seen.shape)
    return True


def _padding(turn: Turn, seen: Tensor) -> Tensor:
    assert turn.indices is not None  # noqa: S101 (made by the decoder)
    return turn.indices[ROW] < 0


def _rejected(turn: Turn) -> Tensor:
    """Return the slots of all drafts rejected so far, bool [B, n + q]."""
    assert turn.seen is not None and turn.indices is not None  # noqa: S101, PT018 (made by the decoder)
    return ~turn.seen & (turn.indices >= 0)


def _without_rejections(turn: Turn) -> bool:
    assert turn.seen is not None  # noqa: S101 (made by the decoder)
    turn.seen = turn.seen | _rejected(turn)
    return True


def _rejected_last(turn: Turn, seen: Tensor) -> Tensor:
    """Return the columns of the drafts that the row rejected in the round before."""
    columns = _rejected(turn)[ROW].nonzero()[:, 0]
    return columns[len(columns) - turn.rejected[ROW] :]


def _first_rejected_last(turn: Turn, seen: Tensor) -> Tensor:
    return _rejected_last(turn, seen)[:1]


def _live(place: int) -> Choice:
    def choice(turn: Turn, seen: Tensor) -> Tensor:
        columns = seen[: turn.old_width].nonzero()[:, 0]
        return columns[place % len(columns)][None]

    return choice


def _first_token(turn: Turn, seen: Tensor) -> Tensor:
    return seen.nonzero()[:1, 0]


def _pending(turn: Turn, seen: Tensor) -> Tensor:
    assert turn.position_ids is not None  # noqa: S101 (stated by the decoder)
    column = len(seen) - turn.position_ids.shape[1]
    return torch.tensor([column], device=seen.device)


FAULTS = (
    Fault(
        name="padding-seen-in-prefill",
        group=Group.MASKS,
        imitates="The prefill of a padded batch is given no attention mask.",
        causes=(Cause.PAD_ATTENDED,),
        make=lambda: Injection(forward=once(_all_rows, at=0)),
    ),
    Fault(
        name="padding-seen-in-rounds",
        group=Group.MASKS,
        imitates="The rounds mask what was rejected and forget the padding of the prefill.",
        causes=(Cause.PAD_ATTENDED,),
        make=lambda: Injection(forward=lasting(_made(True, _padding))),
    ),
    Fault(
        name="hole-unmasked",
        group=Group.MASKS,
        imitates="The mask lets one rejected token of the last round through.",
        causes=(Cause.REJECTED_ATTENDED,),
        make=lambda: Injection(forward=once(_made(True, _first_rejected_last))),
        layouts=IN_PLACE,
        replaced=1.0,
    ),
    Fault(
        name="last-round-unmasked",
        group=Group.MASKS,
        imitates="The mask is brought up to date a round too late: what the last round rejected is seen.",
        causes=(Cause.REJECTED_ATTENDED,),
        make=lambda: Injection(forward=lasting(_made(True, _rejected_last))),
        layouts=IN_PLACE,
        replaced=1.0,
    ),
    Fault(
        name="all-rejected-seen",
        group=Group.MASKS,
        imitates="Only padding is masked: everything that was ever rejected is seen.",
        causes=(Cause.REJECTED_ATTENDED, Cause.STALE_KV),  # never masked is never cut
        make=lambda: Injection(forward=lasting(_without_rejections)),
        layouts=IN_PLACE,
        replaced=1.0,
    ),
    Fault(
        name="live-slot-masked",
        group=Group.MASKS,
        imitates="The mask hides a slot in the middle of a row.",
        causes=(Cause.LIVE_SLOT_MASKED,),
        make=lambda: Injection(forward=once(_made(False, _live(2)))),
    ),
    Fault(
        name="last-accepted-masked",
        group=Group.MASKS,
        imitates="The mask counts one accepted token too few.",
        causes=(Cause.LIVE_SLOT_MASKED,),
        make=lambda: Injection(forward=lasting(_made(False, _live(-1)))),
    ),
    Fault(
        name="first-token-masked",
        group=Group.MASKS,
        imitates="Padding is told by its id, and a prompt that begins with that token loses it.",
        causes=(Cause.LIVE_SLOT_MASKED,),
        make=lambda: Injection(forward=lasting(_made(False, _first_token), at=0)),
    ),
    Fault(
        name="pending-masked",
        group=Group.MASKS,
        imitates="The mask was extended by the proposals and not by the pending token.",
        causes=(Cause.LIVE_SLOT_MASKED,),
        make=lambda: Injection(forward=once(_made(False, _pending))),
    ),
)
