"""Intervals for shares whose cases are not independent: what runs in one batch fails together."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from random import Random
from typing import TYPE_CHECKING

from specaudit.core.shares import Share

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_CLUSTERS = 21
"""Fewer give a bootstrap too little to resample: its intervals come out too short (Cameron, Gelbach and Miller 2008)."""

RESAMPLES = 2000
"""Resamples of the bootstrap: the ends of a 95 % interval rest on 50 of them each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Cases that ran together."""

    count: int
    """Number of cases with the property."""

    total: int
    """Number of cases; at least 1."""


def cluster_share(clusters: Sequence[Cluster], *, seed: int, confidence: float = 0.95) -> Share | None:
    """Return the pooled share of `clusters` with a percentile bootstrap interval over whole clusters.

    None below LEAST_CLUSTERS; also where every cluster holds one case, which leaves nothing to cluster, and where no
    case or every case has the property, which a bootstrap takes for certain. Same clusters and seed, same interval.
    """
    count, total = sum(cluster.count for cluster in clusters), sum(cluster.total for cluster in clusters)
    if len(clusters) < LEAST_CLUSTERS or total == len(clusters) or count in {0, total}:
        return None
    random = Random(seed)  # noqa: S311 (statistics, no secret)
    counts, totals = [cluster.count for cluster in clusters], [cluster.total for cluster in clusters]
    places = range(len(clusters))
    rates = []
    for _ in range(RESAMPLES):
        drawn = random.choices(places, k=len(clusters))
        rates.append(sum(map(counts.__getitem__, drawn)) / sum(map(totals.__getitem__, drawn)))
    rates.sort()
    tail = (1 - confidence) / 2
    low, high = rates[floor(tail * (RESAMPLES - 1))], rates[ceil((1 - tail) * (RESAMPLES - 1))]
    return Share(count=count, total=total, low=min(low, count / total), high=max(high, count / total))
