"""WARRANT: every emitted token is one that the target chose at exactly its prefix, in a clean context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.records import Finding
from specaudit.core.vocabulary import Check

if TYPE_CHECKING:
    from specaudit.checks.streams import Stream
    from specaudit.checks.warrants import TokenWarrant


def check_choice(warrant: TokenWarrant, stream: Stream) -> Finding:
    """Return the finding for an output token at whose prefix the target chose another."""
    reading = next(reading for reading in warrant.readings if reading.top_ids)
    token = stream.tokens[warrant.stream_index]
    chosen = reading.top_ids[0]
    place = warrant.stream_index - stream.prompt_length
    return Finding(
        check=Check.WARRANT,
        step=reading.step,
        row=reading.row,
        query=reading.query,
        stream_index=warrant.stream_index,
        layer=None,
        expected=chosen,
        actual=token,
        message=f"output token {place} is {token}, the target chose {chosen} there",
    )
