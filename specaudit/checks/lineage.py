"""Lineages: which block goes on with which, and with which streams, by what slots hold.

A row of the batch is nobody: decoders reorder, drop, copy and refill rows. What a block goes on with is the block that
left its slots so. It may be read as part of every stream that its slots hold tokens of, or that it begins:
streams that begin alike have equal bits in their first slots, and only later tokens tell them apart.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from specaudit.checks.block import Block, block_of, common_length
from specaudit.checks.reading import Places, Reading, read_block
from specaudit.trace.records import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from specaudit.trace.records import Step, Trace


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    """A block with its readings."""

    step: int
    """Target forward, counted from 0."""

    row: int
    """Row of the batch."""

    contents: np.ndarray
    """Content id of each slot of the row, int64 [n]; `UNKNOWN` where nobody wrote it."""

    own: list[int]
    """Content id of each query's own slot, [q]; `UNKNOWN` where it was not found."""

    first_write: int
    """Write of the first query; those of the others follow."""

    sees_itself: list[bool]
    """Whether each query sees its own slot, [q]."""

    parent: Node | None = None
    """The block that this one goes on with."""

    readings: dict[int, Reading] = field(default_factory=dict)
    """Reading by stream."""

    @property
    def begins(self) -> bool:
        """Return whether the block is better read as the beginning of a stream than as going on with one."""
        fed = {True: 0, False: 0}
        for reading in self.readings.values():
            fed[reading.begins] = max(fed[reading.begins], len(reading.indices))
        return fed[True] > fed[False]


class Lineages:
    """Follows a trace step by step; `nodes` are all blocks, in order."""

    def __init__(self, trace: Trace, streams: Sequence[tuple[list[int], int]]) -> None:
        """Each stream is its tokens and the number of them in the prompt."""
        self.nodes: list[Node] = []
        self._streams = streams
        contents = len(trace.writes_of)
        self._lowest = np.full((len(streams), contents), UNKNOWN, dtype=np.int32)
        self._highest = self._lowest.copy()
        self._contents_of: list[list[int]] = [[] for _ in trace.writes]  # by write: one for each group of layers
        for content, writes in enumerate(trace.writes_of):
            for write in writes:
                self._contents_of[write].append(content)
        self._first_write: dict[int, int] = {}  # by step
        for place, made in enumerate(trace.writes):
            self._first_write.setdefault(made.step, place)
        self._last: dict[int | None, dict[int, Node]] = {}  # cache -> row -> its last block
        self._continued: set[Node] = set()  # blocks that others of this step go on with

    def follow(self, step: Step) -> None:
        """Read every block of a step; `step` has ids and at least one view."""
        blocks = [block_of(step, row) for row in range(step.views[0].contents.shape[0])]
        self._continued = set()
        nodes = [self._read(block, step.cache) for block in blocks]
        for node in nodes:
            self._note(node, step.cache)

    def _read(self, block: Block, cache: int | None) -> Node:
        node = Node(
            step=block.step,
            row=block.row,
            contents=block.contents,
            own=[UNKNOWN if own == UNKNOWN else int(block.contents[own]) for own in block.own],
            first_write=self._first_write[block.step] + block.row * len(block.ids),
            sees_itself=block.sees_itself,
        )
        seen = block.contents[block.seen_before]
        known = seen[seen != UNKNOWN]
        if self._go_on(node, block, known, cache):
            if not any(reading.exact for reading in node.readings.values()):
                self._begin(node, block, whole_prompts=True)
            return node
        self._begin(node, block)
        if any(reading.exact for reading in node.readings.values()):
            return node
        beginnings, node.readings = node.readings, {}
        hidden = block.contents[block.hidden_before]
        is_going_on = self._go_on(node, block, hidden[hidden != UNKNOWN], cache)
        if not is_going_on and len(known) < len(seen):
            self._go_on_altered(node, block, cache)
        for stream, beginning in beginnings.items():
            going_on = node.readings.get(stream)
            if going_on is None or len(going_on.indices) < len(beginning.indices):
                node.readings[stream] = beginning
        return node

    def _streams_held(self, contents: np.ndarray) -> list[int]:
        held: list[int] = np.flatnonzero((self._highest[:, contents] >= 0).any(1)).tolist()
        return held

    def _go_on(self, node: Node, block: Block, contents: np.ndarray, cache: int | None) -> bool:
        """Read a block as going on with each stream that some of its slots hold, and say whether there is one."""
        streams = self._streams_held(contents)
        if streams:
            node.parent = self._parent(block, contents, streams, cache)
            if node.parent is not None:
                self._continued.add(node.parent)
            self._read_on(node, block, streams)
        return bool(streams)

    def _go_on_altered(self, node: Node, block: Block, cache: int | None) -> None:
        """Read a block whose slots hold bits that nobody wrote as going on with what its row held before."""
        before = self._last.get(cache, {}).get(block.row)
        if before is not None:
            node.parent = before
            self._read_on(node, block, before.readings)

    def _read_on(self, node: Node, block: Block, streams: Iterable[int]) -> None:
        for stream in streams:
            tokens, prompt_length = self._streams[stream]
            places = self._places(stream, block.contents)
            before = node.parent.readings.get(stream) if node.parent is not None else None
            node.readings[stream] = read_block(block, tokens, prompt_length, places, before=before)

    def _places(self, stream: int, contents: np.ndarray) -> Places:
        is_known = contents != UNKNOWN
        known = np.where(is_known, contents, 0)
        return Places(
            lowest=np.where(is_known, self._lowest[stream, known], UNKNOWN),
            highest=np.where(is_known, self._highest[stream, known], UNKNOWN),
        )

    def _begin(self, node: Node, block: Block, *, whole_prompts: bool = False) -> None:
        """Read a block as the beginning of each stream that it may begin."""
        unknown = np.full(len(block.contents), UNKNOWN)
        nothing = Places(lowest=unknown, highest=unknown)
        for stream, (tokens, prompt_length) in enumerate(self._streams):
            first = block.starts_at(tokens, prompt_length)
            if first is None or (whole_prompts and not _is_whole_prompt(block, first, tokens[:prompt_length])):
                continue
            reading = read_block(block, tokens, prompt_length, nothing, before=None, first=first)
            reading.begins = True
            node.readings[stream] = reading

    def _parent(self, block: Block, contents: np.ndarray, streams: Sequence[int], cache: int | None) -> Node | None:
        """Return the block that left the slots as this one finds them: it held them all, and its streams end there.

        Rows that decode alike hold equal bits; among equals it is the one in the same row.
        """
        starts = {stream: self._places(stream, contents).at(contents >= 0).follower() for stream in streams}
        same_cache = self._last.get(cache, {})
        before = same_cache.get(block.row)
        if before is not None and _distance(before, starts) == 0 and np.isin(contents, before.contents).all():
            return before
        others = [node for rows in self._last.values() for node in rows.values()]
        for nodes in (list(same_cache.values()), others):
            holding = [node for node in nodes if np.isin(contents, node.contents).all()]
            if holding:
                return min(
                    holding,
                    key=lambda node: (
                        not self._goes_on(block, node, starts),
                        _distance(node, starts),
                        int((~np.isin(node.own, contents)).sum()),
                        node.row != block.row,
                        node in self._continued,
                        -node.step,
                    ),
                )
        return max(
            others,
            key=lambda node: (int(np.isin(contents, node.contents).sum()), node.row == block.row, node.step),
            default=None,
        )

    def _goes_on(self, block: Block, node: Node, starts: Mapping[int, int]) -> bool:
        """Return whether a block feeds the next token of one of the streams that explain another block best."""
        first = next((token for token, is_alive in zip(block.ids, block.sees_itself, strict=True) if is_alive), None)
        for stream, reading in _best(node).items():
            tokens, _ = self._streams[stream]
            if first in {*tokens[reading.reached : reading.reached + 1], *tokens[starts.get(stream, 0) :][:1]}:
                return True
        return False

    def _note(self, node: Node, cache: int | None) -> None:
        self.nodes.append(node)
        self._last.setdefault(cache, {})[node.row] = node
        for stream, reading in node.readings.items():
            for query, index in reading.indices.items():
                for content in self._contents_of[node.first_write + query]:
                    lowest = self._lowest[stream, content]
                    self._lowest[stream, content] = index if lowest == UNKNOWN else min(lowest, index)
                    self._highest[stream, content] = max(self._highest[stream, content], index)


def _is_whole_prompt(block: Block, first: int, prompt: list[int]) -> bool:
    """Return whether a block feeds a whole prompt from position 0 on: what finished rows are fed goes on counting."""
    is_placed = block.positions is None or block.positions[first] == 0
    return is_placed and common_length(prompt, block.ids[first:]) == len(prompt)


def _distance(node: Node, starts: Mapping[int, int]) -> int:
    """Return how far a block reached from where another begins, in tokens, by the streams that explain the block best."""
    distances = [
        min(abs(reading.reached - starts[stream]), abs(reading.reached_exactly - starts[stream]))
        for stream, reading in _best(node).items()
        if stream in starts
    ]
    return min(distances, default=sys.maxsize)


def _best(node: Node) -> dict[int, Reading]:
    """Return the readings that explain most of a block's row."""
    weights = {stream: reading.reached + reading.reached_exactly for stream, reading in node.readings.items()}
    best = max(weights.values(), default=0)
    return {stream: reading for stream, reading in node.readings.items() if weights[stream] == best}
