"""KV: the slots that a token saw hold, in every layer, the keys and values of exactly its prefix.

RECT and POS count slots and positions; what they cannot see is a slot of the right place with the wrong bits in some
layer. The trie knows where the context of each write first went wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.records import Finding
from specaudit.core.vocabulary import Check
from specaudit.trace.trie import NONE, Flaw, FlawKind

if TYPE_CHECKING:
    from specaudit.checks.misplaced import Misplaced
    from specaudit.checks.streams import Stream
    from specaudit.checks.warrants import TokenWarrant
    from specaudit.trace.trie import PrefixTrie

WORDS = {
    FlawKind.UNOBSERVED: "what it saw was not observed",
    FlawKind.UNWRITTEN: "a slot that attention sees holds bits that nobody wrote",
    FlawKind.PADDING: "attention sees a slot that padding wrote",
    FlawKind.HIDDEN: "attention does not see every slot of the row's stream",
    FlawKind.REPEATED: "attention sees two slots for one token of the row's stream",
    FlawKind.BRANCHES: "attention sees slots of another stream or of rejected drafts",
    FlawKind.LAYERS_DISAGREE: "the layers see slots of different streams",
    FlawKind.POSITION: "the position used is not the number of tokens before it",
}


def check_origin(trie: PrefixTrie, stream: Stream, warrant: TokenWarrant) -> Finding | None:
    """Return where the context of an unread prefix first went wrong, or None where the trace does not show it."""
    flaws = [
        flaw
        for attempts in stream.attempts[: warrant.stream_index]
        for attempt in attempts
        if (node := trie.node_of_write[attempt.write]) != NONE and (flaw := trie.flaws[node]) is not None
    ]
    observed = [flaw for flaw in flaws if flaw.kind is not FlawKind.UNOBSERVED]
    if len(observed) < len(flaws) or not observed:
        return None
    return flaw_finding(min(observed, key=lambda flaw: flaw.moment), warrant.stream_index)


def misplaced_finding(misplaced: Misplaced) -> Finding:
    """Return the finding for a token that was fed after another stream's tokens."""
    return Finding(
        check=Check.KV,
        step=misplaced.step,
        row=misplaced.row,
        query=misplaced.query,
        stream_index=misplaced.stream_index,
        layer=None,
        expected=None,
        actual=None,
        message="the token was fed behind slots that are not those of its own stream",
    )


def flaw_finding(flaw: Flaw, stream_index: int) -> Finding:
    """Return the finding for a flaw in the context of a stream's token."""
    column = "" if flaw.column is None else f" (slot {flaw.column})"
    return Finding(
        check=Check.POS if flaw.kind is FlawKind.POSITION else Check.KV,
        step=flaw.step,
        row=flaw.row,
        query=flaw.query,
        stream_index=stream_index,
        layer=flaw.layer,
        expected=flaw.expected,
        actual=flaw.actual,
        message=WORDS[flaw.kind] + column,
    )
