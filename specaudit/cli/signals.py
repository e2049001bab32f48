"""Signals that ask a run to stop: they end it as Ctrl-C does, with a valid partial report."""

from __future__ import annotations

import atexit
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

STOPPING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

GRACE_SECONDS = 2.0
"""Time in which what was asked to stop puts things back and writes its report."""


@contextmanager
def stopping_on_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt in the block at a stopping signal; put the handlers back after it.

    A signal within `GRACE_SECONDS` of the one that was heeded is ignored, so that an impatient second Ctrl-C does not
    cost the partial report or the exit code; a later one is heeded again. For that, handlers stay in place after a block
    that was stopped: its process is about to end.
    Outside the main thread, where no handler can be set, the block runs as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.getsignal(number) for number in STOPPING}

    heeded: float | None = None

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal heeded
        now = time.monotonic()
        if heeded is None or now - heeded > GRACE_SECONDS:
            heeded = now
            raise KeyboardInterrupt

    for number in STOPPING:
        signal.signal(number, stop)
    try:
        yield
    finally:
        if heeded is None:
            for number, handler in previous.items():
                signal.signal(number, handler)
        else:
            atexit.register(_ignore_signals)


def _ignore_signals() -> None:
    """Ignore stopping signals while Python shuts down: it would put default handlers in place, which kill."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
