"""Tokens that were fed, but in the cache of another stream.

Rows are followed by what their slots hold. Where rows change places in the cache and not in the batch, a row goes on with
the slots of another stream, and the token that its own stream needed next is fed after the wrong ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specaudit.trace.trie import NONE, ROOT, FlawKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.checks.streams import Stream
    from specaudit.trace.records import Trace
    from specaudit.trace.trie import PrefixTrie


@dataclass(frozen=True, slots=True, kw_only=True)
class Misplaced:
    """Where a stream's next token was fed after another prefix."""

    step: int
    """Target forward, counted from 0."""

    row: int
    """Row of the batch."""

    query: int
    """Place in the row's block."""

    stream_index: int
    """Index of the token in prompt + output."""


def misplaced_token(trace: Trace, trie: PrefixTrie, stream: Stream, streams: Sequence[Stream]) -> Misplaced | None:
    """Return where the first token of a stream that no clean query fed was fed at its position all the same, or None.

    Only the first token of a block is looked at: those behind it are proposals, which may be anything.
    """
    node, depth = ROOT, 0
    while depth < len(stream.tokens) and (child := trie.children.get((node, stream.tokens[depth]))) is not None:
        node, depth = child, depth + 1
    if not 0 < depth < len(stream.tokens) - 1:
        return None
    earliest = trie.readings[node][0].step
    for number, write in enumerate(trace.writes):
        step = trace.steps[write.step]
        if write.step <= earliest or write.token != stream.tokens[depth] or step.position_ids is None:
            continue
        is_first = all(trie.node_of_write[before] == NONE for before in range(number - write.query, number))
        if (
            is_first
            and int(step.position_ids[write.row, write.query]) == depth
            and not _continues_a_stream(trie, trie.node_of_write[number], streams)
        ):
            return Misplaced(step=write.step, row=write.row, query=write.query, stream_index=depth)
    return None


def _continues_a_stream(trie: PrefixTrie, node: int, streams: Sequence[Stream]) -> bool:
    """Return whether the slots that a query saw and the token that it fed begin some stream, wrong position or not."""
    flaw = trie.flaws[node]
    if flaw is not None and flaw.kind is not FlawKind.POSITION:
        return False
    path = trie.path(node)
    return any(other.tokens[: len(path)] == path for other in streams)
