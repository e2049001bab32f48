"""Numbers as printed: never rounded to all or nothing."""

from __future__ import annotations

import pytest

from specaudit.core.shares import Share
from specaudit.report.numbers import rate_interval


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (0.0, 1.0, "0-100 %"),
        (0.00002, 0.000173, "0.0020-0.017 %"),
        (0.0099, 0.051, "0.99-5.1 %"),
        (0.5, 0.99999, "50.0-99.9 %"),
    ],
)
def test_a_small_rate_keeps_two_figures(low: float, high: float, shown: str) -> None:
    assert rate_interval(Share(count=1, total=2, low=low, high=high)) == shown
