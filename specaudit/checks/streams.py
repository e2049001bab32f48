"""Streams: which fed token is which token of which prompt's output.

A stream is a prompt followed by what the decoder returned for it. Rows are matched to prompts by what their slots hold and
by the ids fed, never by their place in the batch; tokens are placed from the ids that were fed and the slots that they
follow. A draft that the target rejected is not part of the stream and has no place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from specaudit.checks.lineage import Lineages, Node
from specaudit.checks.ownership import choose_owners

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.checks.reading import Reading
    from specaudit.trace.records import Trace


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

    write: int
    """Index of its write in the trace."""

    strangers: int
    """Number of slots of the widest view that it saw and that are known to hold no token which belongs before it."""

    sees_itself: bool
    """Whether the token saw its own slot; one that does not may be padding that happens to have the token's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One step in which the target verified proposals for places inside an output."""

    step: int
    """Target forward, counted from 0."""

    proposed: int
    """Proposals, at least 1."""

    accepted: int
    """Those that stayed."""


@dataclass(slots=True, kw_only=True)
class Stream:
    """One prompt and what was seen of its decoding."""

    prompt_length: int
    """Tokens in the prompt."""

    tokens: list[int]
    """Prompt + output."""

    attempts: list[list[Attempt]] = field(default_factory=list)
    """For each token of the stream the times that its own rows fed it, in order of the steps."""

    shared: list[list[Attempt]] = field(default_factory=list)
    """For each token the times that a row of another stream fed it after the same tokens, exactly."""

    proposed_tokens: int = 0
    """Tokens fed for places inside the output before the target had decided them."""

    accepted_tokens: int = 0
    """Those of them that stayed."""

    rounds: list[Round] = field(default_factory=list)
    """The same round by round, in order."""

    steps: int = 0
    """Steps that fed a token of the stream."""

    def __post_init__(self) -> None:
        """Make room for the attempts."""
        self.attempts = [[] for _ in self.tokens]
        self.shared = [[] for _ in self.tokens]


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
    lineages = Lineages(trace, [(stream.tokens, stream.prompt_length) for stream in streams])
    for step in trace.steps:
        if step.input_ids is not None and step.views and step.is_complete:
            lineages.follow(step)
    owners = choose_owners(lineages.nodes)
    for place, stream in enumerate(streams):
        _Filling(stream).fill(place, lineages.nodes, owners)
    return streams


@dataclass(frozen=True, slots=True, kw_only=True)
class JointRounds:
    """Steps in which the proposals of several streams were verified."""

    joint: frozenset[int]
    """All of them."""

    ragged: frozenset[int]
    """Those in which streams accepted different numbers."""


def joint_rounds(streams: Sequence[Stream]) -> JointRounds:
    """Return in which steps streams of one call had rounds together."""
    accepted: dict[int, list[int]] = {}
    for stream in streams:
        for one in stream.rounds:
            accepted.setdefault(one.step, []).append(one.accepted)
    return JointRounds(
        joint=frozenset(step for step, counts in accepted.items() if len(counts) > 1),
        ragged=frozenset(step for step, counts in accepted.items() if len(set(counts)) > 1),
    )


class _Filling:
    """Fills a stream with its attempts and counts."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.reached = 0
        self.steps: set[int] = set()

    def fill(self, place: int, nodes: Sequence[Node], owners: Sequence[int | None]) -> None:
        """Take from every block what it fed of stream number `place`."""
        for node, owner in zip(nodes, owners, strict=True):
            reading = node.readings.get(place)
            if reading is None or not reading.indices:
                continue
            if owner == place:
                self._count(node, reading)
                self._take(node, reading)
            else:
                self._share(node, reading)
        self.stream.steps = len(self.steps)

    def _take(self, node: Node, reading: Reading) -> None:
        """Take a block of the stream's own, but for what it fed exactly of another stream: that is not at fault."""
        exact_elsewhere = {query for other in node.readings.values() for query in other.exact} - reading.exact
        for query, index in reading.indices.items():
            if query not in exact_elsewhere:
                self.stream.attempts[index].append(_attempt(node, reading, query))
        self.reached = max(self.reached, reading.reached)
        self.steps.add(node.step)

    def _share(self, node: Node, reading: Reading) -> None:
        for query in reading.exact:
            index = reading.indices[query]
            self.stream.shared[index].append(_attempt(node, reading, query))

    def _count(self, node: Node, reading: Reading) -> None:
        """Count proposals: tokens fed from the first stream token on, beyond what was decided and within the output."""
        stream = self.stream
        reached = self.reached if reading.begins else reading.reached_before
        decided = max(stream.prompt_length, reached + 1)
        first = min(reading.indices)
        fed = sum(node.sees_itself[first:])
        known = sum(index < decided for index in reading.indices.values())
        room = len(stream.tokens) - max(decided, reading.indices[first])
        proposed, accepted = max(0, min(fed - known, room)), len(reading.indices) - known
        stream.proposed_tokens += proposed
        stream.accepted_tokens += accepted
        if proposed:
            stream.rounds.append(Round(step=node.step, proposed=proposed, accepted=accepted))


def _attempt(node: Node, reading: Reading, query: int) -> Attempt:
    return Attempt(
        step=node.step,
        row=node.row,
        query=query,
        stream_index=reading.indices[query],
        write=node.first_write + query,
        strangers=reading.strangers[query],
        sees_itself=node.sees_itself[query],
    )
