"""The ledger: from the fingerprint of a slot to the writes that made it.

The fingerprint of a column (all layers of one geometry together) names a content; every write appends itself to the
contents it made. Looking a slot up by its bits recovers what it holds after any realignment, whatever the decoder did.
Which layers share a geometry may change from step to step (one layer cropped further than the others), so what is kept
is what each layer was given, and columns are made of it as they are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from specaudit.trace.records import UNKNOWN, SlotParts, Trace, Write

if TYPE_CHECKING:
    from collections.abc import Mapping


KEYS, VALUES = 0, 1
"""Places of keys and values in an array of fingerprints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """The writes of one step, and what they gave each layer."""

    first_write: int
    fed: Mapping[int, np.ndarray]  # layer -> int64 [2, B, q]: keys, values


@dataclass(slots=True, kw_only=True)
class _Columns:
    """Contents by fingerprint for one group of layers."""

    content_of: dict[int, int] = field(default_factory=dict)
    entries_read: int = 0


@dataclass(slots=True, kw_only=True)
class _States:
    """Writes by fingerprint for one layer's keys or values."""

    writes_of: dict[int, list[int]] = field(default_factory=dict)
    entries_read: int = 0


class Ledger:
    """Contents by fingerprint, for one trace."""

    def __init__(self, trace: Trace) -> None:
        """Append to `trace`."""
        self._trace = trace
        self._entries: list[_Entry] = []
        self._columns: dict[tuple[int, ...], _Columns] = {}
        self._states: dict[tuple[int, int], _States] = {}

    def enter(self, step: int, input_ids: np.ndarray, fed: Mapping[int, np.ndarray]) -> None:
        """Append a write for each token fed, int64 [B, q], row by row.

        `fed` holds for each layer the fingerprints of the new keys and values, int64 [2, B, q].
        """
        rows, queries = input_ids.shape
        self._entries.append(_Entry(first_write=len(self._trace.writes), fed=fed))
        self._trace.writes.extend(
            Write(step=step, row=row, query=query, token=int(input_ids[row, query]))
            for row in range(rows)
            for query in range(queries)
        )

    def look_up(self, layers: tuple[int, ...], fingerprints: np.ndarray) -> np.ndarray:
        """Return the content id of each slot, int64 like `fingerprints` [B, n]; `UNKNOWN` where nobody wrote it."""
        columns = self._columns.setdefault(layers, _Columns())
        for entry in self._entries[columns.entries_read :]:
            if all(layer in entry.fed for layer in layers):
                self._read(entry, layers, columns.content_of)
        columns.entries_read = len(self._entries)
        contents = [columns.content_of.get(fingerprint, UNKNOWN) for fingerprint in fingerprints.ravel().tolist()]
        return np.array(contents, dtype=np.int64).reshape(fingerprints.shape)

    def parts(self, held: Mapping[int, np.ndarray], row: int, column: int) -> SlotParts:
        """Return which writes made each layer's keys and values of a slot; `held` is int64 [2, B, n] for each layer."""
        made: list[dict[int, frozenset[int]]] = [{}, {}]
        for layer, fingerprints in held.items():
            for kind in (KEYS, VALUES):
                writes = self._writes_of_state(layer, kind).get(int(fingerprints[kind, row, column]), ())
                made[kind][layer] = frozenset(writes)
        is_zero = any(not fingerprints[kind, row, column] for fingerprints in held.values() for kind in (KEYS, VALUES))
        return SlotParts(keys=made[KEYS], values=made[VALUES], is_zero=is_zero)

    def _writes_of_state(self, layer: int, kind: int) -> dict[int, list[int]]:
        states = self._states.setdefault((layer, kind), _States())
        for entry in self._entries[states.entries_read :]:
            if layer in entry.fed:
                for offset, fingerprint in enumerate(entry.fed[layer][kind].ravel().tolist()):
                    states.writes_of.setdefault(fingerprint, []).append(entry.first_write + offset)
        states.entries_read = len(self._entries)
        return states.writes_of

    def _read(self, entry: _Entry, layers: tuple[int, ...], content_of: dict[int, int]) -> None:
        writes_of = self._trace.writes_of
        fingerprints = column_fingerprints(entry.fed, layers)
        for offset, fingerprint in enumerate(fingerprints.ravel().tolist()):
            content = content_of.setdefault(fingerprint, len(writes_of))
            if content == len(writes_of):
                writes_of.append([])
            writes_of[content].append(entry.first_write + offset)


def column_fingerprints(states: Mapping[int, np.ndarray], layers: tuple[int, ...]) -> np.ndarray:
    """Return the fingerprint of each column over some layers, int64 [B, n]; `states` is [2, B, n] for each layer."""
    return np.sum([states[layer].sum(0) for layer in layers], axis=0)  # type: ignore[no-any-return]


def own_slots(fed: np.ndarray, held: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """Return the column that holds each query's own slot, int64 [B, q].

    `fed` are the fingerprints of the new keys and values [B, q], `held` those of all slots [B, n], `visible` is bool
    [B, q, n]. The last q columns when they match (contiguous caches), unless no query sees its own there while one sees
    the same bits elsewhere: a token whose keys and values are zeros looks like the unwritten end of a static cache. Else
    the rightmost visible column with the same bits, else any, else `UNKNOWN`.
    """
    queries, width = fed.shape[1], held.shape[1]
    last = np.broadcast_to(np.arange(width - queries, width), fed.shape)
    is_contiguous = queries <= width and np.array_equal(held[:, width - queries :], fed)
    if is_contiguous and np.take_along_axis(visible, last[:, :, None], 2).any():
        return last
    same = fed[:, :, None] == held[:, None, :]  # [B, q, n]
    seen = np.where(same & visible, np.arange(width), UNKNOWN).max(-1, initial=UNKNOWN)
    if is_contiguous and (seen == UNKNOWN).all():
        return last
    anywhere: np.ndarray = np.where(same, np.arange(width), UNKNOWN).max(-1, initial=UNKNOWN)
    return np.where(seen != UNKNOWN, seen, anywhere)
