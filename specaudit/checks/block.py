"""A block: what one row fed in one step, and what each of its tokens saw."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from specaudit.trace.records import UNKNOWN

if TYPE_CHECKING:
    from specaudit.trace.records import Step


@dataclass(frozen=True, kw_only=True)
class Block:
    """One row of one step, as the layers of its widest view saw it."""

    step: int
    """Target forward, counted from 0."""

    row: int
    """Row of the batch."""

    ids: list[int]
    """Token ids fed, [q]."""

    positions: list[int] | None
    """Positions in effect, [q], or None when they were not seen."""

    chosen: list[int]
    """Token that the target finds most likely after each query, [q]; `UNKNOWN` where its logits were not seen."""

    visible: np.ndarray
    """Whether a query reaches a slot, bool [q, n]."""

    own: list[int]
    """Column of each query's own slot, [q]; `UNKNOWN` where it was not found."""

    contents: np.ndarray
    """Content id of each slot, int64 [n]; `UNKNOWN` where nobody wrote it."""

    window: int | None
    """Most slots a query may see, itself included, or None for no limit."""

    @cached_property
    def sees_itself(self) -> list[bool]:
        """Return for each query whether it sees its own slot; one that does not is padding, or its mask is wrong."""
        return [own == UNKNOWN or bool(self.visible[query, own]) for query, own in enumerate(self.own)]

    @cached_property
    def counts(self) -> list[int]:
        """Return for each query the number of slots that it sees."""
        counts: list[int] = self.visible.sum(1).tolist()
        return counts

    @cached_property
    def is_own(self) -> np.ndarray:
        """Return which columns this block wrote, bool [n]."""
        is_own = np.zeros(self.visible.shape[1], dtype=bool)
        is_own[[own for own in self.own if own != UNKNOWN]] = True
        return is_own

    @cached_property
    def seen_before(self) -> np.ndarray:
        """Return the columns that the block sees and did not write, int64 [m]."""
        return np.flatnonzero(self.visible.any(0) & ~self.is_own)

    @cached_property
    def hidden_before(self) -> np.ndarray:
        """Return the columns that the block neither sees nor wrote, int64 [m]."""
        return np.flatnonzero(~self.visible.any(0) & ~self.is_own)

    def starts_at(self, tokens: list[int], prompt_length: int) -> int | None:
        """Return the query that would be the first token of a stream, or None where the block does not begin it.

        From there the block must follow the stream to the end of the prompt, or to its own end. A query that sees itself
        alone at position 0 comes first; else the longest run, else the last: padding stands on the left.
        """
        best: tuple[bool, int, int] | None = None
        for query, token in enumerate(self.ids):
            if token != tokens[0]:
                continue
            run = common_length(tokens, self.ids[query:])
            alive = sum(self.sees_itself[query:]) or len(self.ids) - query
            if run >= min(prompt_length, alive):
                candidate = (self._is_first(query), run, query)
                best = candidate if best is None else max(best, candidate)
        return None if best is None else best[2]

    def _is_first(self, query: int) -> bool:
        is_alone = self.sees_itself[query] and self.counts[query] == 1
        return is_alone and (self.positions is None or self.positions[query] == 0)


def block_of(step: Step, row: int) -> Block:
    """Return the block that a row fed; `step` has ids and at least one view."""
    view = step.views[0]
    assert step.input_ids is not None  # noqa: S101 (the caller leaves such steps out)
    return Block(
        step=step.index,
        row=row,
        ids=step.input_ids[row].tolist(),
        positions=None if step.position_ids is None else step.position_ids[row].tolist(),
        chosen=[UNKNOWN] * step.input_ids.shape[1] if step.top_ids is None else step.top_ids[row, :, 0].tolist(),
        visible=view.visible[row],
        own=view.own_slots[row].tolist(),
        contents=view.contents[row],
        window=view.window,
    )


def common_length(left: list[int], right: list[int]) -> int:
    """Return for how many tokens two lists begin alike."""
    for length, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return length
    return min(len(left), len(right))
