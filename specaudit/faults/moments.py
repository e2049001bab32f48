"""When a fault is made: once, at the first round from `AT` on that suits it, or in every round from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.faults.fault import Injection

if TYPE_CHECKING:
    from collections.abc import Callable

    from specaudit.faults.fault import Turn

    Change = Callable[[Turn], bool]
    """Makes a fault in a turn and returns whether the turn suited it."""

AT = 2
"""Round in which most faults are made first: by then rows have accepted and rejected."""

ROW = 1
"""Row in which faults of one row are made: the shortest, which has padding in front of it."""


def once(change: Change, *, at: int = AT) -> Callable[[Turn], None]:
    """Return a change that is tried in every round from `at` on until it is made."""
    is_made = False

    def try_it(turn: Turn) -> None:
        nonlocal is_made
        if not is_made and turn.step >= at:
            is_made = change(turn)

    return try_it


def after_a_move(forward: Callable[[Turn], None]) -> Injection:
    """Return a fault that is made before forwards, once slots have been moved."""
    is_moved = False

    def note(turn: Turn) -> None:
        nonlocal is_moved
        is_moved = True

    def make_it(turn: Turn) -> None:
        if is_moved:
            forward(turn)

    return Injection(before_move=note, forward=make_it)


def lasting(change: Change, *, at: int = AT) -> Callable[[Turn], None]:
    """Return a change that is made in every round from `at` on that suits it."""

    def make_it(turn: Turn) -> None:
        if turn.step >= at:
            change(turn)

    return make_it
