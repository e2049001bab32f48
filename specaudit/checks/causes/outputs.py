"""Causes in what was returned: the tokens of another prompt, or padding among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.records import CauseFinding
from specaudit.core.vocabulary import Cause

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def permuted_cause(
    prompt_id: str, output: Sequence[int], references: Mapping[str, Sequence[int]]
) -> CauseFinding | None:
    """Return the finding for an output that is the reference of another prompt of its call, or None.

    `references` are those of all prompts decoded together, by prompt id.
    """
    if list(references[prompt_id]) == list(output):
        return None
    owner = next((other for other, reference in references.items() if list(reference) == list(output)), None)
    if owner is None:
        return None
    return CauseFinding(
        cause=Cause.PERMUTED,
        step=None,
        row=None,
        query=None,
        stream_index=None,
        evidence=f"the output is that of prompt {owner}",
    )


def pad_leak_cause(
    output: Sequence[int], reference: Sequence[int], *, pad_token_id: int, is_end: bool, prompt_length: int
) -> CauseFinding | None:
    """Return the finding for padding in an output where the reference has another token or has ended, or None.

    `is_end` says whether the padding token is an end of sequence as well: then the first one behind an output is its end.
    """
    for place, token in enumerate(output):
        expected = reference[place] if place < len(reference) else None
        if token == expected:
            continue
        if token != pad_token_id or is_end:
            return None
        return CauseFinding(
            cause=Cause.PAD_LEAK,
            step=None,
            row=None,
            query=None,
            stream_index=prompt_length + place,
            evidence=f"output token {place} is padding, id {pad_token_id}",
        )
    return None
