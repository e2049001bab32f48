"""Reading a block as part of one stream: which of its tokens is which token of prompt + output.

A query's index is one past the last stream token that it sees, by what its slots hold. Where the number of slots and the
position agree with that, the query is *exact*: what it computed are the logits after that many tokens, and there is nothing
to explain. A token that does not fit an exact query in the output is a draft which the target rejected, and what sees it is
off the stream. Only what does not agree is explained, and only so that a finding can name it.

Bits mostly tell which token of the stream a slot holds, but not always: a token whose embedding is all zeros has the same
bits wherever only such tokens come before it. So a slot has a lowest and a highest place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from specaudit.trace.records import UNKNOWN

if TYPE_CHECKING:
    from specaudit.checks.block import Block


@dataclass(slots=True, kw_only=True)
class Reading:
    """One block as part of one stream."""

    indices: dict[int, int] = field(default_factory=dict)
    """Stream index of each query that feeds a stream token."""

    exact: set[int] = field(default_factory=set)
    """Those of them whose slots and position agree with their index."""

    strangers: dict[int, int] = field(default_factory=dict)
    """Number of slots seen by each of them that are known to hold no token which belongs before it."""

    begins: bool = False
    """Whether the block begins the stream, rather than going on with what its slots hold."""

    reached_before: int = 0
    """Leading tokens of the stream that the row had fed before."""

    reached: int = 0
    """The same with this block."""

    reached_exactly: int = 0
    """The same, counting exact queries alone."""

    chosen: set[int] = field(default_factory=set)
    """Stream indices of the output tokens that the target's logits chose after the block's tokens."""

    is_complete: bool = False
    """Whether all tokens that another rests on had been fed before this block: what follows is of no account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Which token of a stream each slot may hold, by its bits."""

    lowest: np.ndarray
    """Lowest stream index, int [n]; `UNKNOWN` for a slot that holds none."""

    highest: np.ndarray
    """Highest stream index, int [n]; `UNKNOWN` for a slot that holds none."""

    def at(self, columns: np.ndarray) -> Places:
        """Return the places of the slots in some columns (bool [n] or indices) that hold a token of the stream."""
        lowest, highest = self.lowest[columns], self.highest[columns]
        return Places(lowest=lowest[highest >= 0], highest=highest[highest >= 0])

    def follower(self) -> int:
        """Return the index of the token that would follow the slots."""
        if not len(self.lowest):
            return 0
        known = int(self.lowest.max()) + 1
        return known if np.array_equal(self.lowest, self.highest) else max(known, len(self.lowest))

    def within(self, first: int, last: int) -> np.ndarray:
        """Return which slots may hold a token from index `first` up to `last`, bool [n]."""
        return (self.highest >= first) & (self.lowest <= last) & (self.highest >= 0)


def read_block(
    block: Block,
    tokens: list[int],
    prompt_length: int,
    places: Places,
    *,
    before: Reading | None,
    first: int = 0,
) -> Reading:
    """Return the reading of a block under the stream `tokens`.

    `before` is the reading of the block that this one goes on with; queries before `first` are padding.
    """
    if before is None:
        reached = places.at(~block.is_own).follower()
        reading = Reading(reached_before=reached, reached=reached, reached_exactly=reached)
    else:
        reading = Reading(reached_before=before.reached, reached=before.reached, reached_exactly=before.reached_exactly)
    reading.is_complete = reading.reached >= len(tokens) - 1
    reader = _Reader(block, tokens, prompt_length, places, reading)
    for query in range(first, len(block.ids)):
        reader.read(query)
    return reader.reading


class _Reader:
    """Reads one query after the other; what a query holds is known to those after it."""

    def __init__(self, block: Block, tokens: list[int], prompt_length: int, places: Places, reading: Reading) -> None:
        self.block = block
        self.tokens = tokens
        self.prompt_length = prompt_length
        self.places = Places(
            lowest=np.where(block.is_own, UNKNOWN, places.lowest),
            highest=np.where(block.is_own, UNKNOWN, places.highest),
        )
        self.is_off = np.zeros(len(block.contents), dtype=bool)  # columns of rejected drafts of this block
        self.reading = reading
        self.has_begun = False

    def read(self, query: int) -> None:
        """Find the index of a query and note it."""
        own, is_alive = self.block.own[query], self.block.sees_itself[query]
        others = self.block.visible[query].copy()
        if own != UNKNOWN:
            others[own] = False
        index = self._index(query, others)
        if index is not None:
            self.reading.indices[query] = index
            self.reading.strangers[query] = self._strangers(others, index)
            if own != UNKNOWN:
                self.places.lowest[own] = self.places.highest[own] = index
            if is_alive:
                self.has_begun = True
                self.reading.reached = max(self.reading.reached, index + 1)
                if self._chose_next(query, index):
                    self.reading.chosen.add(index + 1)
        elif self.has_begun and is_alive and own != UNKNOWN:
            self.is_off[own] = True

    def _index(self, query: int, others: np.ndarray) -> int | None:
        if self.is_off[others].any():
            return None
        expected = self.places.at(others).follower()
        position = expected if self.block.positions is None else self.block.positions[query]
        if self._is_exact(query, position, others):
            if self._is_token(query, position):
                self.reading.exact.add(query)
                self.reading.reached_exactly = max(self.reading.reached_exactly, position + 1)
                return position
            if position >= max(self.prompt_length, self.reading.reached_before):
                return None
        return self._explained(query, expected)

    def _chose_next(self, query: int, index: int) -> bool:
        chosen = self.block.chosen[query]
        return self.prompt_length <= index + 1 < len(self.tokens) and self.tokens[index + 1] == chosen

    def _is_token(self, query: int, index: int) -> bool:
        return index < len(self.tokens) and self.tokens[index] == self.block.ids[query]

    def _is_exact(self, query: int, index: int, others: np.ndarray) -> bool:
        """Return whether a query sees the tokens before `index`, in a window the last of them, and nothing else."""
        block = self.block
        count = index + 1 if block.window is None else min(index + 1, block.window)
        if not block.sees_itself[query] or block.counts[query] != count or self._strangers(others, index):
            return False
        return index == 0 or bool((self.places.within(index - 1, index - 1) & others).any())

    def _strangers(self, others: np.ndarray, index: int) -> int:
        window = self.block.window
        first = 0 if window is None else max(0, index + 1 - window)
        is_known = others & (self.block.contents != UNKNOWN)
        return int((is_known & ~self.places.within(first, index - 1)).sum())

    def _explained(self, query: int, expected: int) -> int | None:
        """Return the index that a query should have whose slots or position are wrong, or None for no stream token."""
        fits = self._is_token(query, expected)
        before = self.reading.indices.get(query - 1)
        if before is not None and before >= expected and self._is_token(query, before + 1):
            return before + 1  # the token before it is hidden from it
        beyond = self._beyond_what_is_seen(query, expected)
        if beyond is not None:
            says_so = self.block.counts[query] == beyond + 1
            if self.block.positions is not None:
                says_so = says_so or self.block.positions[query] == beyond
            if says_so or not fits:
                return beyond
        return expected if fits else None

    def _beyond_what_is_seen(self, query: int, expected: int) -> int | None:
        """Return the index of a token that goes on where the row had come to, some of which it cannot see any more."""
        reached = self.reading.reached_before
        if self.has_begun or not self.block.sees_itself[query] or self.reading.is_complete:
            return None
        return next((index for index in range(reached, expected, -1) if self._is_token(query, index)), None)
