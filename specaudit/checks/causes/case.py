"""Why a case failed: what its output shows by itself, then what the trace shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.checks.causes.acceptance import CHOICES
from specaudit.checks.causes.outputs import pad_leak_cause, permuted_cause
from specaudit.checks.causes.stopping import stopping_cause
from specaudit.core.comparison import first_divergence
from specaudit.core.vocabulary import Cause, Sync

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from specaudit.checks.judgement import Judgement
    from specaudit.checks.streams import Stream
    from specaudit.core.records import CauseFinding


def case_causes(
    prompt_id: str,
    output: Sequence[int],
    references: Mapping[str, Sequence[int]],
    *,
    stream: Stream,
    judgement: Judgement,
    eos_token_ids: Set[int],
    pad_token_id: int,
    max_new_tokens: int,
) -> tuple[CauseFinding, ...]:
    """Return the causes of a case, the origin first.

    `references` are those of all prompts decoded together, by prompt id; `stream` and `judgement` are the case's own.
    """
    reference = references[prompt_id]
    divergence = first_divergence(reference, output)
    if divergence is None:
        return judgement.causes
    permuted = permuted_cause(prompt_id, output, references)
    if permuted is not None:
        return (*judgement.causes, permuted) if _is_context(judgement.causes) else (permuted, *judgement.causes)
    leak = pad_leak_cause(
        output,
        reference,
        pad_token_id=pad_token_id,
        is_end=pad_token_id in eos_token_ids,
        prompt_length=stream.prompt_length,
    )
    is_end = divergence.expected is None or divergence.actual is None
    if leak is not None and judgement.sync is not Sync.CERTIFIED and (is_end or not _is_explained(judgement.causes)):
        return (leak, *judgement.causes)
    stopping = stopping_cause(
        reference,
        output,
        prompt=stream.tokens[: stream.prompt_length],
        eos_token_ids=eos_token_ids,
        max_new_tokens=max_new_tokens,
        stream=None if judgement.sync is Sync.UNOBSERVED else stream,
    )
    if stopping is None:
        return judgement.causes
    return (stopping, *judgement.causes) if is_end else (*judgement.causes, stopping)


def _is_context(causes: Sequence[CauseFinding]) -> bool:
    """Return whether the origin lies in what attention saw: outputs that loop may equal another prompt's by accident."""
    return bool(causes) and causes[0].query is not None and causes[0].cause not in CHOICES


def _is_explained(causes: Sequence[CauseFinding]) -> bool:
    """Return whether the trace says where a wrong token came from: then that it is padding's id is an accident."""
    return bool(causes) and causes[0].query is not None and causes[0].cause not in _OF_UNKNOWN_TOKENS


_OF_UNKNOWN_TOKENS = {Cause.BONUS_WRONG, Cause.TOKEN_DROPPED}
