"""The ledger: from the fingerprint of a slot to the writes that made it.

The fingerprint of a column (all layers of one geometry together) names a content; every write appends itself to the
contents it made. Looking a slot up by its bits recovers what it holds after any realignment, whatever the decoder did.
"""

from __future__ import annotations

import numpy as np

from specaudit.trace.records import UNKNOWN, Trace, Write


class Ledger:
    """Contents by fingerprint, for one trace."""

    def __init__(self, trace: Trace) -> None:
        """Append to `trace`."""
        self._trace = trace
        self._contents: dict[tuple[tuple[int, ...], int], int] = {}

    def open_writes(self, step: int, input_ids: np.ndarray) -> np.ndarray:
        """Append a write for each token fed, int64 [B, q], and return their indices, int64 [B, q]."""
        first = len(self._trace.writes)
        rows, queries = input_ids.shape
        self._trace.writes.extend(
            Write(step=step, row=row, query=query, token=int(input_ids[row, query]))
            for row in range(rows)
            for query in range(queries)
        )
        return first + np.arange(rows * queries).reshape(rows, queries)

    def enter(self, layers: tuple[int, ...], fingerprints: np.ndarray, writes: np.ndarray) -> None:
        """Note that `writes` [B, q] made the contents with these `fingerprints` [B, q] in `layers`."""
        for fingerprint, write in zip(fingerprints.ravel().tolist(), writes.ravel().tolist(), strict=True):
            content = self._contents.setdefault((layers, fingerprint), len(self._trace.writes_of))
            if content == len(self._trace.writes_of):
                self._trace.writes_of.append([])
            self._trace.writes_of[content].append(write)

    def look_up(self, layers: tuple[int, ...], fingerprints: np.ndarray) -> np.ndarray:
        """Return the content id of each slot, int64 like `fingerprints` [B, n]; `UNKNOWN` where nobody wrote it."""
        contents = [self._contents.get((layers, fingerprint), UNKNOWN) for fingerprint in fingerprints.ravel().tolist()]
        return np.array(contents, dtype=np.int64).reshape(fingerprints.shape)


def own_slots(fed: np.ndarray, held: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """Return the column that holds each query's own slot, int64 [B, q].

    `fed` are the fingerprints of the new keys and values [B, q], `held` those of all slots [B, n], `visible` is bool
    [B, q, n]. The last q columns when they match (contiguous caches); else the rightmost visible column with the same
    bits, else any, else `UNKNOWN`.
    """
    queries, width = fed.shape[1], held.shape[1]
    if queries <= width and np.array_equal(held[:, width - queries :], fed):
        return np.broadcast_to(np.arange(width - queries, width), fed.shape)
    same = fed[:, :, None] == held[:, None, :]  # [B, q, n]
    columns = np.where(same, np.arange(width), UNKNOWN)
    seen = np.where(same & visible, np.arange(width), UNKNOWN).max(-1, initial=UNKNOWN)
    anywhere: np.ndarray = columns.max(-1, initial=UNKNOWN)
    return np.where(seen != UNKNOWN, seen, anywhere)
