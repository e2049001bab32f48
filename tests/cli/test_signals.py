"""Signals: the first one stops, one right behind it is ignored, a later one is heeded again."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from specaudit.cli import signals
from specaudit.cli.signals import STOPPING, stopping_on_signals

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _handlers_as_they_were() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in STOPPING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_second_signal_is_ignored_until_the_grace_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(signals.time, "monotonic", lambda: now)
    with stopping_on_signals():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        for number in STOPPING:
            signal.raise_signal(number)
    for number in STOPPING:  # the process is ending, and still says 130
        signal.raise_signal(number)
    now += signals.GRACE_SECONDS + 0.1
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_handlers_are_put_back_where_nothing_was_stopped() -> None:
    before = [signal.getsignal(number) for number in STOPPING]
    with stopping_on_signals():
        assert [signal.getsignal(number) for number in STOPPING] != before
    assert [signal.getsignal(number) for number in STOPPING] == before
