"""The assignment of rows to columns against every permutation."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from specaudit.checks.assignment import assign


@given(
    st.integers(1, 5).flatmap(
        lambda rows: st.integers(rows, 6).flatmap(
            lambda columns: arrays(np.int64, (rows, columns), elements=st.integers(-(10**12), 10**12))
        )
    )
)
def test_the_sum_is_greatest(weights: np.ndarray) -> None:
    rows, columns = weights.shape
    chosen = assign(weights)
    assert len(set(chosen)) == rows
    best = max(
        sum(weights[row, column] for row, column in enumerate(order)) for order in permutations(range(columns), rows)
    )
    assert sum(weights[row, column] for row, column in enumerate(chosen)) == best
