"""Signals that ask a run to stop: they end it as Ctrl-C does, with a valid partial report."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

STOPPING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def stopping_on_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt in the block at a stopping signal; put the handlers back after it.

    Outside the main thread, where no handler can be set, the block runs as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.getsignal(number) for number in STOPPING}

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    for number in STOPPING:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
