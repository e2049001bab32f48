"""A limit on the time that one decoder call may take.

Python cannot stop a thread, but a timer signal interrupts the main one: the exception is raised inside the decoder. That
happens between two Python instructions, so a call that hangs inside one operation of a library ends only after it.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from specaudit.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


class CallTimedOutError(BaseException):
    """A decoder call took too long; not an Exception, so that a decoder's own `except Exception` lets it pass."""


def check_timeout_is_possible(seconds: float | None) -> None:
    """Raise UsageError where a limit is asked for and the platform or the thread has no timer signal."""
    if seconds is None or _is_possible():
        return
    raise UsageError(
        "a decoder call cannot be interrupted here: that takes a POSIX system and the main thread",
        where="--case-timeout",
        way_out="leave it out, and use --time-limit, which waits for the call that is under way.",
    )


@contextmanager
def call_timeout(seconds: float | None) -> Iterator[None]:
    """Raise CallTimedOutError in the block once it has taken `seconds`; None sets no limit.

    A block that catches the error and goes on is interrupted again every `seconds`, and the error is raised after it.
    """
    if seconds is None:
        yield
        return
    message = f"timed out after {seconds:g} s; --case-timeout sets the limit"
    is_armed, is_late = True, False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal is_late
        is_late = True
        if is_armed:
            raise CallTimedOutError(message)

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
            yield
        finally:
            is_armed = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    if is_late:
        raise CallTimedOutError(message)


def _is_possible() -> bool:
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
