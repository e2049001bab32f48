"""Streams: which fed token is which token of which prompt's output.

A row's stream is its prompt followed by what the decoder returned for it. Rows are matched to prompts by what their slots
hold, so a decoder may reorder, drop and refill rows; tokens are placed from the ids that were fed, never from the mask.
A draft that the target rejected is not part of the stream and has no place.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from specaudit.trace.records import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.trace.records import LayerView, Step, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One time that a stream token was fed to the target."""

    step: int
    """Target forward, counted from 0."""

    row: int
    """Row of the batch."""

    query: int
    """Place of the token in the row's block."""

    stream_index: int
    """Index of the token in prompt + output."""


@dataclass(slots=True, kw_only=True)
class Stream:
    """One prompt and what was seen of its decoding."""

    prompt_length: int
    """Tokens in the prompt."""

    tokens: list[int]
    """Prompt + output."""

    attempts: list[list[Attempt]] = field(default_factory=list)
    """For each token of the stream the times it was fed, in order of the steps."""

    proposed_tokens: int = 0
    """Tokens fed for places inside the output before the target had decided them."""

    accepted_tokens: int = 0
    """Those of them that stayed."""

    steps: int = 0
    """Steps that fed a token of the stream."""

    def __post_init__(self) -> None:
        """Make room for the attempts."""
        self.attempts = [[] for _ in self.tokens]

    @property
    def fed(self) -> int:
        """Return the number of leading tokens that were fed at least once."""
        return next((index for index, attempts in enumerate(self.attempts) if not attempts), len(self.tokens))

    @property
    def decided(self) -> int:
        """Return the number of leading tokens that are known: the prompt, or one past the last token fed."""
        last = max((index for index, attempts in enumerate(self.attempts) if attempts), default=-1)
        return max(self.prompt_length, last + 2)


def trace_streams(
    trace: Trace, prompts: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]
) -> tuple[Stream, ...]:
    """Return one stream a prompt, with every attempt that the trace shows.

    `prompts` and `outputs` are those of the traced decoder call, in its order.
    """
    streams = tuple(
        Stream(prompt_length=len(prompt), tokens=[*prompt, *output])
        for prompt, output in zip(prompts, outputs, strict=True)
    )
    placing = _Placing(trace, streams)
    for step in trace.steps:
        placing.place(step)
    return streams


class _Placing:
    """Places the tokens of one step after the other."""

    def __init__(self, trace: Trace, streams: tuple[Stream, ...]) -> None:
        self.trace = trace
        self.streams = streams
        self.place_of_write: dict[int, tuple[int, int]] = {}  # write -> stream, index
        self.stream_of_row: dict[int, int] = {}  # as of the last step that placed the row
        self.next_write = 0

    def place(self, step: Step) -> None:
        """Place the tokens of `step`."""
        if step.input_ids is None or not step.views:
            return
        view = step.views[0]
        first_write, self.next_write = self.next_write, self.next_write + step.input_ids.size
        width = step.input_ids.shape[1]
        owners: dict[int, int] = {}
        for row, ids in enumerate(step.input_ids.tolist()):
            seeing = _self_seeing(view, row)
            if not seeing:
                continue  # a padding or retired row
            held = self._held_before(step, view, row, seeing)
            owner = self._owner(row, ids, seeing, held, owners)
            if owner is None:
                continue
            owners[row] = owner
            stream = self.streams[owner]
            start = self._start(stream, owner, ids, seeing, held)
            indices = _place_block(stream, ids, seeing, start, view, row)
            self._note(step, row, owner, indices, seeing)
            for query, index in indices.items():
                self.place_of_write[first_write + row * width + query] = (owner, index)
        self.stream_of_row |= owners

    def _held_before(self, step: Step, view: LayerView, row: int, seeing: list[int]) -> list[list[tuple[int, int]]]:
        """Return for each slot that the row sees, written in an earlier step, the stream places it may hold."""
        held = []
        fed_now = set(view.own_slots[row].tolist())  # without a cache their bits may equal an earlier step's
        for column in np.flatnonzero(view.visible[row, seeing].any(axis=0)).tolist():
            if column in fed_now:
                continue
            content = int(view.contents[row, column])
            if content == UNKNOWN:
                continue
            writes = [write for write in self.trace.writes_of[content] if self.trace.writes[write].step < step.index]
            places = [self.place_of_write[write] for write in writes if write in self.place_of_write]
            if places:
                held.append(places)
        return held

    def _owner(
        self,
        row: int,
        ids: list[int],
        seeing: list[int],
        held: list[list[tuple[int, int]]],
        taken: dict[int, int],
    ) -> int | None:
        """Return the stream that a row continues: the one that its slots hold most of, else the one its ids begin."""
        votes: Counter[int] = Counter()
        for places in held:
            votes.update({stream for stream, _ in places})
        previous = self.stream_of_row.get(row)
        free = set(range(len(self.streams))) - set(taken.values())
        if votes:
            return max(
                votes,
                key=lambda stream: (
                    votes[stream],
                    *self._fit(stream, ids, seeing, held),
                    stream in free,
                    stream == previous,
                    -stream,
                ),
            )
        runs = {index: _best_start(stream.tokens, ids, seeing)[1] for index, stream in enumerate(self.streams)}
        fitting = {
            index: run for index, run in runs.items() if run >= min(self.streams[index].prompt_length, len(seeing))
        }
        if not fitting:
            return previous  # its slots are hidden or altered; the row itself tells
        return max(
            fitting,
            key=lambda index: (
                fitting[index],
                self.streams[index].prompt_length == len(seeing),
                index in free,
                index == previous,
                index == row,
                -index,
            ),
        )

    def _fit(
        self, owner: int, ids: list[int], seeing: list[int], held: list[list[tuple[int, int]]]
    ) -> tuple[bool, bool]:
        """Say whether a row could go on with a stream: its next token is fed, its slots hold all that was fed before.

        Streams that begin alike have equal bits in their first slots; this tells them apart.
        """
        stream = self.streams[owner]
        start = self._start(stream, owner, ids, seeing, held)
        return start < len(stream.tokens) and ids[seeing[0]] == stream.tokens[start], start == stream.fed

    def _start(
        self, stream: Stream, owner: int, ids: list[int], seeing: list[int], held: list[list[tuple[int, int]]]
    ) -> int:
        """Return the index that the row's next token should have: one past the last that its slots hold."""
        last = max((index for places in held for place, index in places if place == owner), default=None)
        if last is not None:
            return last + 1
        whole = _best_start(stream.tokens, ids, seeing)[1] >= min(stream.prompt_length, len(seeing))
        return 0 if whole else stream.fed

    def _note(self, step: Step, row: int, owner: int, indices: dict[int, int], seeing: list[int]) -> None:
        if not indices:
            return
        stream = self.streams[owner]
        decided = stream.decided
        first = min(indices)
        fed = [query for query in seeing if query >= first]
        known = sum(index < decided for index in indices.values())
        room = len(stream.tokens) - max(decided, indices[first])
        stream.proposed_tokens += max(0, min(len(fed) - known, room))
        stream.accepted_tokens += len(indices) - known
        stream.steps += 1
        for query, index in indices.items():
            stream.attempts[index].append(Attempt(step=step.index, row=row, query=query, stream_index=index))


def _self_seeing(view: LayerView, row: int) -> list[int]:
    """Return the queries of a row that see their own slot; one that does not is padding."""
    queries = []
    for query, column in enumerate(view.own_slots[row].tolist()):
        if column == UNKNOWN or view.visible[row, query, column]:
            queries.append(query)
    return queries


def _place_block(
    stream: Stream, ids: list[int], seeing: list[int], start: int, view: LayerView, row: int
) -> dict[int, int]:
    """Return the stream index of each query of a block that feeds a stream token.

    `start` is the index that the first token should have, by what the row's slots hold.
    """
    tokens = stream.tokens
    if start < stream.prompt_length:
        first, run = _best_start(tokens[start:], ids, seeing)
    else:
        first, run = seeing[0], 1
        if start >= len(tokens) or ids[first] != tokens[start]:
            start, run = _recovered_start(stream, ids[first:], start)
    if not run:
        return {}
    indices: dict[int, int] = {}
    for query in (query for query in seeing if query >= first):
        index = _index_of(query, first, start, indices, ids, view, row)
        if index is not None and index < len(tokens) and ids[query] == tokens[index]:
            indices[query] = index
    return indices


def _index_of(
    query: int, first: int, start: int, indices: dict[int, int], ids: list[int], view: LayerView, row: int
) -> int | None:
    """Return the index that `query` would have: after its predecessor, or after its ancestors in a tree of drafts."""
    if query == first:
        return start
    if query - 1 in indices:
        return indices[query - 1] + 1
    earlier = [
        other
        for other in range(first, query)
        if (column := int(view.own_slots[row, other])) != UNKNOWN and view.visible[row, query, column]
    ]
    if not earlier or any(other not in indices for other in earlier):
        return None  # it follows a rejected draft
    return max(indices[other] for other in earlier) + 1


def _best_start(tokens: Sequence[int], ids: list[int], seeing: list[int]) -> tuple[int, int]:
    """Return the query from which `ids` follow `tokens` longest, and for how many tokens; the last of equals."""
    best, longest = seeing[0], 0
    for query in seeing:
        run = _run(tokens, ids, query)
        if run and run >= longest:
            best, longest = query, run
    return best, longest


def _run(tokens: Sequence[int], ids: list[int], query: int) -> int:
    run = 0
    for token, fed in zip(tokens, ids[query:], strict=False):
        if token != fed:
            break
        run += 1
    return run


def _recovered_start(stream: Stream, ids: list[int], expected: int) -> tuple[int, int]:
    """Return where a block fits that does not start where the row's slots say, and for how many tokens.

    The first token never fed is tried first; else the place of the longest match in the output, nearest to `expected`.
    """
    tokens = stream.tokens
    fed = stream.fed
    if fed < len(tokens) and tokens[fed] == ids[0]:
        return fed, _run(tokens[fed:], ids, 0)
    candidates = [
        (run, -abs(start - expected), start)
        for start in range(stream.prompt_length, len(tokens))
        if (run := _run(tokens[start:], ids, 0))
    ]
    if not candidates:
        return expected, 0
    run, _, start = max(candidates)
    return start, run
