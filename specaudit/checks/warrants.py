"""Warrants: which tokens of an output the target chose at exactly their prefix, in a clean context.

A token is warranted when some query read its whole prefix, all slots and positions right in every layer, and the token
attains the maximum of that query's logits. No row needs to be known for it: prefixes are looked up in the trie.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from specaudit.trace.trie import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.checks.streams import Stream
    from specaudit.trace.trie import PrefixTrie, Reading


class Standing(Enum):
    """What is known of a token."""

    WARRANTED = auto()
    """The target chose it."""

    NOT_CHOSEN = auto()
    """The target chose another at its prefix."""

    LOGITS_UNSEEN = auto()
    """Its prefix was read, and the logits were not seen."""

    UNREAD = auto()
    """Its prefix was never read in a clean context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWarrant:
    """One token of an output."""

    stream_index: int
    """Index in prompt + output."""

    standing: Standing
    """What is known of it."""

    readings: Sequence[Reading]
    """Every time that its prefix was read in a clean context, in order."""


def output_warrants(trie: PrefixTrie, stream: Stream) -> list[TokenWarrant]:
    """Return one entry for each token of a stream's output, in order."""
    warrants = []
    node = trie.find(stream.tokens[: stream.prompt_length])
    for index in range(stream.prompt_length, len(stream.tokens)):
        token = stream.tokens[index]
        readings = [] if node is None or node == ROOT else trie.readings[node]
        warrants.append(TokenWarrant(stream_index=index, standing=_standing(token, readings), readings=readings))
        node = None if node is None else trie.children.get((node, token))
    return warrants


def _standing(token: int, readings: Sequence[Reading]) -> Standing:
    if not readings:
        return Standing.UNREAD
    if any(token in reading.top_ids for reading in readings):
        return Standing.WARRANTED
    return Standing.NOT_CHOSEN if any(reading.top_ids for reading in readings) else Standing.LOGITS_UNSEEN


def is_read_for_each(warrant: TokenWarrant, stream: Stream, streams: Sequence[Stream]) -> bool:
    """Return whether a token's prefix was read at least as often as there are streams that had to read it.

    Streams that begin alike share nodes, so that a sound row can stand in for the broken row of its twin.
    """
    prefix = stream.tokens[: warrant.stream_index]
    readers = sum(
        len(other.tokens) > len(prefix) and other.tokens[: len(prefix)] == prefix for other in streams
    )  # nothing reads a stream's last token
    return len(warrant.readings) >= readers
