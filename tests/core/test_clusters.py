"""The cluster bootstrap against scipy's and against what it must do when clusters do or do not matter."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from scipy.stats import bootstrap

from specaudit.core.clusters import LEAST_CLUSTERS, Cluster, cluster_share
from specaudit.core.shares import share


def clusters(counts: list[int], total: int = 8) -> list[Cluster]:
    return [Cluster(count=count, total=total) for count in counts]


def test_agrees_with_scipys_percentile_bootstrap() -> None:
    counts = [Random(1).choice([0, 2, 7, 8, 8, 8]) for _ in range(40)]
    found = cluster_share(clusters(counts), seed=0)
    expected = bootstrap((np.array(counts) / 8,), np.mean, method="percentile", rng=np.random.default_rng(0))
    assert found is not None
    assert found.low == pytest.approx(expected.confidence_interval.low, abs=0.02)
    assert found.high == pytest.approx(expected.confidence_interval.high, abs=0.02)
    assert (found.count, found.total) == (sum(counts), 320)


def test_batches_that_fail_together_widen_the_interval() -> None:
    together = cluster_share(clusters([0] * 8 + [8] * 32), seed=0)
    apart = cluster_share(clusters([6, 7] * 16 + [6] * 8), seed=0)
    independent = share(256, 320)
    assert together is not None
    assert apart is not None
    assert together.high - together.low > 2 * (independent.high - independent.low)
    assert apart.high - apart.low < independent.high - independent.low
    assert together.low <= together.rate <= together.high


def test_unequal_clusters_are_pooled_by_their_cases() -> None:
    uneven = [Cluster(count=1, total=2)] * 21 + [Cluster(count=100, total=100)]
    found = cluster_share(uneven, seed=0)
    assert found is not None
    assert (found.count, found.total) == (121, 142)
    assert found.low == pytest.approx(0.5)


def test_same_seed_same_interval() -> None:
    counts = [Random(2).randrange(9) for _ in range(30)]
    assert cluster_share(clusters(counts), seed=3) == cluster_share(clusters(counts), seed=3)


@pytest.mark.parametrize(
    "given",
    [
        [],
        clusters([4] * (LEAST_CLUSTERS - 1)),
        clusters([8] * 40),
        clusters([0] * 40),
        clusters([0, 1] * 20, total=1),
    ],
)
def test_where_a_bootstrap_says_nothing(given: list[Cluster]) -> None:
    assert cluster_share(given, seed=0) is None
