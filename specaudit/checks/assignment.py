"""The assignment problem: each row a column of its own, so that the sum is greatest."""

from __future__ import annotations

import numpy as np


def assign(weights: np.ndarray) -> list[int]:
    """Return for each row of `weights` (int64 [n, m], n at most m) its column, no column twice, the sum greatest.

    Kuhn's method with potentials, one row after the other by the shortest augmenting path (Jonker and Volgenant 1987).
    """
    best: list[int] = weights.argmax(1).tolist()
    if len(set(best)) == len(best):
        return best
    rows, columns = weights.shape
    costs = np.zeros((rows + 1, columns + 1), dtype=np.int64)
    costs[1:, 1:] = weights.max() - weights
    row_potential = np.zeros(rows + 1, dtype=np.int64)
    column_potential = np.zeros(columns + 1, dtype=np.int64)
    row_of = np.zeros(columns + 1, dtype=np.int64)  # column 0 stands for the row that is being placed
    for row in range(1, rows + 1):
        row_of[0], column = row, 0
        distance = np.full(columns + 1, np.iinfo(np.int64).max)
        previous = np.zeros(columns + 1, dtype=np.int64)
        is_used = np.zeros(columns + 1, dtype=bool)
        while row_of[column]:
            is_used[column] = True
            reduced = costs[row_of[column]] - row_potential[row_of[column]] - column_potential
            closer = ~is_used & (reduced < distance)
            distance[closer], previous[closer] = reduced[closer], column
            nearest = int(np.where(is_used, np.iinfo(np.int64).max, distance)[1:].argmin()) + 1
            step = distance[nearest]
            row_potential[row_of[is_used]] += step
            column_potential[is_used] -= step
            distance[~is_used] -= step
            column = nearest
        while column:
            row_of[column] = row_of[previous[column]]
            column = int(previous[column])
    column_of = {int(row): column - 1 for column, row in enumerate(row_of) if column and row}
    return [column_of[row] for row in range(1, rows + 1)]
