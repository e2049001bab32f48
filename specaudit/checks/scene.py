"""A scene: what one query saw, slot by slot, and what it should have seen.

Slots are named by their content: a token of the query's own stream, a draft that the stream's row fed and that is no
token of it, padding, a slot that another row wrote, or bits that nobody wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from specaudit.trace.records import UNKNOWN
from specaudit.trace.trie import NONE, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from specaudit.checks.streams import Stream
    from specaudit.trace.records import LayerView, SlotParts, Step, Trace, Write
    from specaudit.trace.trie import PrefixTrie


class SlotKind(Enum):
    """What a slot holds, to a stream."""

    TOKEN = "a token of the stream"  # noqa: S105 (no password)
    DRAFT = "a draft that the stream's row fed"
    PADDING = "padding"
    FOREIGN = "a token of another row"
    STRANGE = "bits that nobody wrote"


_ORDER = {kind: place for place, kind in enumerate(SlotKind)}
"""Which of several kinds a slot is given whose bits stand for more than one: the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One column of a row's cache, as a query's stream sees it."""

    column: int
    """Column of the cache."""

    kind: SlotKind
    """What it holds."""

    index: int | None
    """Stream index of the token that it holds, for a draft the one where it stood, or None."""

    write: Write | None
    """What made it, or None for bits that nobody wrote."""

    is_visible: bool
    """Whether the query's attention reaches it."""

    parts: SlotParts | None
    """Layer by layer, bits that nobody wrote; else None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What one query saw."""

    step: Step
    """The forward."""

    view: LayerView
    """The layers looked at."""

    row: int
    """Row of the batch."""

    query: int
    """Place in the row's block."""

    index: int
    """Stream index of the token fed."""

    stream: Stream
    """Whose token it is."""

    slots: tuple[Slot, ...]
    """All columns of the row but the query's own, in order."""

    @property
    def visible(self) -> tuple[Slot, ...]:
        """Return the slots that attention reaches."""
        return tuple(slot for slot in self.slots if slot.is_visible)

    @property
    def expected(self) -> range:
        """Return the stream indices that the query should see besides itself."""
        window = self.view.window
        return range(0 if window is None else max(0, self.index + 1 - window), self.index)

    @property
    def missing(self) -> tuple[int, ...]:
        """Return the expected stream indices of which no visible slot holds the token."""
        held = {slot.index for slot in self.visible if slot.kind is SlotKind.TOKEN}
        return tuple(index for index in self.expected if index not in held)


class Scenery:
    """Makes scenes of one stream."""

    def __init__(self, trace: Trace, trie: PrefixTrie, stream: Stream) -> None:
        """`stream` is one of those that `trace_streams` returned for the trace."""
        self.trace = trace
        self.trie = trie
        self.stream = stream
        attempts = [attempt for of_token in stream.attempts for attempt in of_token]
        self._index_of_write = {attempt.write: attempt.stream_index for attempt in attempts}
        self._blocks: dict[tuple[int, int], dict[int, int]] = {}  # (step, row) -> query -> stream index
        for attempt in sorted(attempts, key=lambda attempt: attempt.query):
            self._blocks.setdefault((attempt.step, attempt.row), {})[attempt.query] = attempt.stream_index
        self._on_stream = {ROOT: True}  # node -> whether its prefix begins the stream
        self._labels: dict[int, tuple[SlotKind, int | None, Write | None]] = {}

    def scene(self, step: int, row: int, query: int, *, layer: int | None = None, index: int | None = None) -> Scene:
        """Return what a query saw in the group of layers that holds `layer`; `index` says which token it is, if known."""
        of_step = self.trace.steps[step]
        view = next((view for view in of_step.views if layer in view.layers), of_step.views[0])
        known = self.index_at(step, row, query)
        own = int(view.own_slots[row, query])
        slots = tuple(
            self._slot(view, row, query, column) for column in range(view.width) if column != own or own == UNKNOWN
        )
        return Scene(
            step=of_step,
            view=view,
            row=row,
            query=query,
            index=next((place for place in (known, index) if place is not None), len(self.stream.tokens) - 1),
            stream=self.stream,
            slots=slots,
        )

    def index_at(self, step: int, row: int, query: int) -> int | None:
        """Return which token of the stream its own row fed there, or None."""
        return self.block(step, row).get(query)

    def block(self, step: int, row: int) -> dict[int, int]:
        """Return the stream indices of the tokens that a row fed in a step, by query."""
        return self._blocks.get((step, row), {})

    def _is_beside_prompt(self, write: Write) -> bool:
        """Return whether a write stands before the first token of the stream's row, or in a run of one id to its end.

        Padding that no mask hides sees itself, so it cannot be told by what it sees.
        """
        block = self.block(write.step, write.row)
        ids = self.trace.steps[write.step].input_ids
        if ids is None or 0 not in block.values():
            return False
        if write.query < next(query for query, index in block.items() if index == 0):
            return True
        rest = ids[write.row, write.query :]
        return write.query > max(block) and len(rest) > 1 and bool((rest == rest[0]).all())

    def _slot(self, view: LayerView, row: int, query: int, column: int) -> Slot:
        content = int(view.contents[row, column])
        kind, index, write = self.label(content)
        return Slot(
            column=column,
            kind=kind,
            index=index,
            write=write,
            is_visible=bool(view.visible[row, query, column]),
            parts=view.parts.get((row, column)),
        )

    def label(self, content: int) -> tuple[SlotKind, int | None, Write | None]:
        """Return what a content is to the stream, the index of its token, and what made it."""
        if content == UNKNOWN:
            return SlotKind.STRANGE, None, None
        if content not in self._labels:
            self._labels[content] = self._label_of(self.trace.writes_of[content])
        return self._labels[content]

    def label_of_writes(self, writes: Iterable[int]) -> tuple[SlotKind, int | None, Write | None]:
        """Return what a slot holds that any of some writes made; one of the stream's own tokens comes first."""
        return self._label_of(sorted(writes)) if writes else (SlotKind.STRANGE, None, None)

    def _label_of(self, writes: Iterable[int]) -> tuple[SlotKind, int | None, Write | None]:
        best: tuple[SlotKind, int | None, Write | None] = SlotKind.STRANGE, None, None
        for write in writes:
            label = self._label_of_write(write)
            if label[0] is SlotKind.TOKEN:
                return label
            if _ORDER[label[0]] < _ORDER[best[0]]:
                best = label
        return best

    def _label_of_write(self, number: int) -> tuple[SlotKind, int | None, Write | None]:
        write, node = self.trace.writes[number], self.trie.node_of_write[number]
        if number in self._index_of_write:
            return SlotKind.TOKEN, self._index_of_write[number], write
        if node == NONE or self._is_beside_prompt(write):
            return SlotKind.PADDING, None, write
        depth = self.trie.depths[node]
        if self.trie.flaws[node] is None and self._is_on_stream(node):
            return SlotKind.TOKEN, depth - 1, write
        if self.block(write.step, write.row):
            return SlotKind.DRAFT, depth - 1, write
        return SlotKind.FOREIGN, depth - 1, write

    def _is_on_stream(self, node: int) -> bool:
        """Return whether a node's prefix is the beginning of the stream."""
        waiting = []
        while node not in self._on_stream:
            waiting.append(node)
            node = self.trie.parents[node]
        is_on_stream = self._on_stream[node]
        for one in reversed(waiting):
            depth = self.trie.depths[one]
            fits = depth <= len(self.stream.tokens) and self.trie.tokens[one] == self.stream.tokens[depth - 1]
            is_on_stream = self._on_stream[one] = is_on_stream and fits
        return is_on_stream
