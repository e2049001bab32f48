"""Causes in stopping: the tokens are right as far as they go, the end is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.records import CauseFinding
from specaudit.core.vocabulary import Cause

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from specaudit.checks.streams import Stream


def stopping_cause(
    reference: Sequence[int],
    output: Sequence[int],
    *,
    prompt: Sequence[int],
    eos_token_ids: Set[int],
    max_new_tokens: int,
    stream: Stream | None,
) -> CauseFinding | None:
    """Return what is wrong with the end of an output, or None where the stop rules hold.

    `stream` is that of the output, if it was traced: it tells whether decoding went on after an end of sequence.
    """
    end = next((place for place, token in enumerate(output) if token in eos_token_ids), None)
    if end is not None and end + 1 < len(output):
        return _after_eos(end, output, len(prompt), stream)
    if len(output) > max_new_tokens:
        evidence = f"{len(output)} tokens were returned, {max_new_tokens} asked for"
        return _found(Cause.OVER_BUDGET, len(prompt) + max_new_tokens, evidence)
    is_cut = len(output) < len(reference) and list(reference[: len(output)]) == list(output)
    if not is_cut or end is not None:
        return None
    evidence = f"the output has {len(output)} tokens and no end of sequence, the reference has {len(reference)}"
    in_prompt = next((place for place, token in enumerate(prompt) if token in eos_token_ids), None)
    lacks_end_alone = len(output) == len(reference) - 1 and reference[-1] in eos_token_ids
    if in_prompt is not None and not lacks_end_alone:
        evidence += f"; token {in_prompt} of the prompt is an end of sequence"
        return _found(Cause.PROMPT_EOS, len(prompt) + len(output), evidence)
    return _found(Cause.EARLY_STOP, len(prompt) + len(output), evidence)


def _after_eos(end: int, output: Sequence[int], prompt_length: int, stream: Stream | None) -> CauseFinding:
    index = prompt_length + end
    after = len(output) - end - 1
    evidence = f"{after} token{'s follow' if after > 1 else ' follows'} the end of sequence at output token {end}"
    tail = [] if stream is None else stream.attempts[index + 1 : len(stream.tokens) - 1]
    steps = {attempt.step for attempts in tail for attempt in attempts}
    at_end = set() if stream is None else {attempt.step for attempt in stream.attempts[index]}
    went_on = bool(steps - at_end) if stream is not None else True
    cause = Cause.MISSED_EOS if went_on else Cause.TAIL_AFTER_EOS
    return _found(cause, index + 1, evidence)


def _found(cause: Cause, index: int, evidence: str) -> CauseFinding:
    return CauseFinding(cause=cause, step=None, row=None, query=None, stream_index=index, evidence=evidence)
