"""Shares with their counts and intervals: no percentage without both."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """`count` of `total`, with a two-sided interval for the underlying rate."""

    count: int
    """Number of cases with the property."""

    total: int
    """Number of cases looked at; at least 1."""

    low: float
    """Lower end of the interval, in [0, 1]."""

    high: float
    """Upper end of the interval, in [0, 1]."""

    @property
    def rate(self) -> float:
        """Return the observed rate, in [0, 1]."""
        return self.count / self.total


def share(count: int, total: int, *, confidence: float = 0.95) -> Share:
    """Return `count` of `total` with its Wilson score interval (Wilson 1927), cases taken as independent.

    Raises ValueError when `total` is not positive (a share of nothing is refused) or `count` lies outside 0..total.
    """
    if total <= 0:
        raise ValueError("a share of no cases does not exist")
    if not 0 <= count <= total:
        raise ValueError(f"{count} of {total} is not a share")
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    rate = count / total
    scale = 1 + z * z / total
    middle = (rate + z * z / (2 * total)) / scale
    half = z * sqrt(rate * (1 - rate) / total + z * z / (4 * total * total)) / scale
    low = 0.0 if count == 0 else max(0.0, middle - half)
    high = 1.0 if count == total else min(1.0, middle + half)
    return Share(count=count, total=total, low=low, high=high)


def upper_bound_of_zero(total: int, *, confidence: float = 0.95) -> float:
    """Return the largest rate that `total` cases without a failure leave possible (one-sided, exact binomial).

    Source: Clopper and Pearson 1934; for 0 of n it is 1 - (1 - confidence) ** (1 / n). Raises ValueError for no cases.
    """
    if total <= 0:
        raise ValueError("no cases bound nothing")
    return float(1 - (1 - confidence) ** (1 / total))
