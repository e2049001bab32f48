"""Which legal variants there are, and where each is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specaudit.faults.legal import (
    adaptive_draft,
    chunked_prefill,
    finished_rows_kept,
    last_token_again,
    no_bonus,
    plain_loop,
    reordered_rows,
    right_padded,
)

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalVariant:
    """A correct decoder."""

    name: str
    """Name, in words joined by hyphens."""

    what: str
    """What is unusual about it, in one sentence."""

    decode: Callable[..., Any]
    """The decoder."""

    counts_columns: bool = False
    """Whether padding or rejected slots stand between a row's tokens, which a window counts."""


VARIANTS = (
    LegalVariant(
        name="no-bonus",
        what="No bonus after a full acceptance: the last proposal is fed again instead.",
        decode=no_bonus.decode,
    ),
    LegalVariant(
        name="last-token-again",
        what="The last token whose keys are cached is fed again each round.",
        decode=last_token_again.decode,
    ),
    LegalVariant(
        name="adaptive-draft",
        what="The number of proposals follows the last acceptance, from none at all upwards.",
        decode=adaptive_draft.decode,
    ),
    LegalVariant(name="no-draft", what="One token a forward, nothing is proposed.", decode=plain_loop.decode),
    LegalVariant(
        name="finished-rows-kept",
        what="Finished rows stay in the batch and go on decoding; what they add is thrown away.",
        decode=finished_rows_kept.decode,
    ),
    LegalVariant(
        name="rows-reordered",
        what="The rows of the batch change places after every round.",
        decode=reordered_rows.decode,
    ),
    LegalVariant(
        name="right-padding",
        what="Prompts are padded on the right; the padding stays between prompt and output, masked.",
        decode=right_padded.decode,
        counts_columns=True,
    ),
    LegalVariant(
        name="chunked-prefill",
        what="Prompts are fed a few tokens at a time, and rejected slots stay, masked.",
        decode=chunked_prefill.decode,
        counts_columns=True,
    ),
)
"""Legal variants of the self-test, besides the decoder of the faults itself without a fault."""
