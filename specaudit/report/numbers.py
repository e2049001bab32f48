"""Numbers as a reader meets them: no percentage is rounded up to 100 or down to 0."""

from __future__ import annotations

from math import ceil, floor, log10
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specaudit.core.shares import Share

NOTHING = "-"
"""Stands for what was not measured; never 0."""


def percent(rate: float) -> str:
    """Return a rate in [0, 1] as a percentage without its sign: `0`, `99.9`, `100`."""
    if rate in {0.0, 1.0}:
        return f"{rate:.0%}".rstrip("%")
    return f"{min(max(100 * rate, 0.1), 99.9):.1f}"


def percent_at_most(bound: float) -> str:
    """Return an upper bound in [0, 1] as a percentage, rounded up."""
    return percent(ceil(1000 * bound) / 1000)


def interval(value: Share) -> str:
    """Return the interval of a share: `80.6-100 %`."""
    return f"{percent(value.low)}-{percent(value.high)} %"


def rate_interval(value: Share) -> str:
    """Return the interval of a share that may be tiny, two figures at least: `0.0021-0.017 %`."""
    return f"{_figures(value.low)}-{_figures(value.high)} %"


def _figures(rate: float) -> str:
    if rate in {0.0, 1.0}:
        return percent(rate)
    shown = min(100 * rate, 99.9)
    return f"{shown:.{max(1, 1 - floor(log10(shown)))}f}"


def share_lines(value: Share | None) -> str:
    """Return a share as two lines, its count above its interval."""
    return NOTHING if value is None else f"{value.count}/{value.total}\n{interval(value)}"


def rate_per_second(value: float | None) -> str:
    """Return a rate with three figures at least where it is small."""
    if value is None:
        return NOTHING
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def parameters(count: int) -> str:
    """Return a number of parameters: `1.9 M`, `7.2 B`."""
    for size, unit in ((1_000_000_000, " B"), (1_000_000, " M"), (1_000, " k")):
        if count >= size:
            return f"{count / size:.1f}".removesuffix(".0") + unit
    return str(count)


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """Return a count with its noun: `1 case`, `2 cases`."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"
