"""Two recordings side by side: paired by id, never by line, and judged as a run's cases are.

What cannot be compared is unmeasured, never equal and never left out: an output that is missing on either side, one
that failed, a prompt that differs, outputs of which one has ids alone and the other text alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import PurePath
from typing import TYPE_CHECKING

from specaudit.core.comparison import first_divergence, partial_match, shared_length
from specaudit.core.errors import InputError
from specaudit.core.records import CaseResult
from specaudit.core.vocabulary import Compared, Sync, Verdict
from specaudit.engines.recordings import printable
from specaudit.text.description import described
from specaudit.text.output_pair import Vocabulary

if TYPE_CHECKING:
    from specaudit.core.comparison import Divergence
    from specaudit.engines.recordings import RecordedOutput, Recording

UNSEEN = "a recording shows no inner state"
"""Why a replayed case is `unobserved`."""

PROMPT_DIFFERS = "prompt-differs"
"""Cause of a case whose two sides were asked different things."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judgement:
    """What the comparison of one pair gives; the defaults are those of a pair that cannot be compared."""

    error: str | None = None
    compared: Compared = Compared.IDS
    verdict: Verdict = Verdict.UNMEASURED
    divergence: Divergence | None = None
    partial_match: float | None = None


def compare_recordings(recording: Recording, reference: Recording) -> tuple[CaseResult, ...]:
    """Return one case for each id of either recording, in the order of the reference, then of the recording.

    Raises InputError where not one id is in both.
    """
    extra = [record_id for record_id in recording.outputs if record_id not in reference.outputs]
    if len(extra) == len(recording.outputs):
        there = next(iter(reference.outputs))
        raise InputError(
            f"no id of it is in {reference.name}: '{printable(extra[0])}' against '{printable(there)}'",
            where=recording.name,
            way_out="give both recordings the same ids, those of the prompts.",
        )
    name = PurePath(recording.name).name or recording.name
    return tuple(
        _case(record_id, recording.outputs.get(record_id), reference.outputs.get(record_id), name=name)
        for record_id in (*reference.outputs, *extra)
    )


def _case(record_id: str, output: RecordedOutput | None, reference: RecordedOutput | None, *, name: str) -> CaseResult:
    """Return the case of an id that at least one side has."""
    judgement = _judge(output, reference)
    is_measured = judgement.verdict is not Verdict.UNMEASURED
    reference_ids, reference_text = (reference.output_ids, reference.text) if reference else (None, None)
    output_ids, output_text = (output.output_ids, output.text) if output and is_measured else (None, None)
    known = [side for side in (reference, output) if side is not None]
    batch = next((side.batch for side in reversed(known)), None)
    case = CaseResult(
        case_id=record_id,
        decoder=batch.decoder if batch else name,
        batch_size=batch.batch_size if batch else None,
        draft_tokens=batch.draft_tokens if batch else None,
        seed=batch.seed if batch else None,
        unit=batch.unit if batch else 0,
        call=batch.call if batch else 0,
        prompt_id=record_id,
        prompt_digest=_digest(known[0]),
        category=next((side.category for side in known if side.category), None),
        prompt_ids=known[0].prompt_ids or (),
        reference_ids=reference_ids or (),
        output_ids=output_ids if judgement.compared is Compared.IDS else None,
        compared=judgement.compared,
        reference_text=reference_text,
        output_text=output_text,
        verdict=judgement.verdict,
        sync=Sync.UNOBSERVED,
        sync_reason=UNSEEN,
        findings=(),
        first_divergence=judgement.divergence,
        partial_match=judgement.partial_match,
        proposed_tokens=None,
        accepted_tokens=None,
        target_steps=None,
        error=judgement.error,
    )
    return described(case, vocabulary=Vocabulary(), prompt_text=known[0].prompt)


def _judge(output: RecordedOutput | None, reference: RecordedOutput | None) -> _Judgement:
    """Compare a pair: by ids where both sides have them, else by text. Equal obstacles are named in equal words."""
    if output is None:
        return _Judgement(error="missing: the recording has no output of this id")
    if reference is None:
        return _Judgement(error="missing: the reference has no output of this id")
    if output.error is not None:
        return _Judgement(error=output.error)
    if reference.error is not None:
        return _Judgement(error=f"the reference has no output: {reference.error}")
    obstacle = _prompt_obstacle(output, reference)
    if obstacle is not None:
        return _Judgement(error=obstacle)
    if output.output_ids is not None and reference.output_ids is not None:
        divergence = first_divergence(reference.output_ids, output.output_ids)
        compared, is_equal = Compared.IDS, divergence is None
        partial = partial_match(reference.output_ids, output.output_ids)
    elif output.text is not None and reference.text is not None:
        compared, is_equal, divergence, partial = Compared.TEXT, output.text == reference.text, None, None
    else:
        return _Judgement(error="the outputs cannot be compared: one side has output_ids alone, the other text alone")
    return _Judgement(
        compared=compared,
        verdict=Verdict.IDENTICAL if is_equal else Verdict.DIVERGED,
        divergence=divergence,
        partial_match=partial,
    )


def _prompt_obstacle(output: RecordedOutput, reference: RecordedOutput) -> str | None:
    """Return why the two sides were not asked the same, or cannot be shown to have been; else None."""
    if output.prompt_ids is not None and reference.prompt_ids is not None:
        if output.prompt_ids == reference.prompt_ids:
            return None
        shared = shared_length(output.prompt_ids, reference.prompt_ids)
        return f"{PROMPT_DIFFERS}: the token ids of the prompts part at token {shared}"
    if output.prompt is not None and reference.prompt is not None:
        if output.prompt == reference.prompt:
            return None
        shared = shared_length(output.prompt, reference.prompt)
        return f"{PROMPT_DIFFERS}: the texts of the prompts part at character {shared}"
    return "the prompts cannot be compared: one side has prompt_ids alone, the other prompt alone"


def _digest(output: RecordedOutput) -> str:
    """Return the SHA-256 of the prompt's ids, or else of its text."""
    asked = output.prompt if output.prompt_ids is None else list(output.prompt_ids)
    return sha256(json.dumps(asked).encode()).hexdigest()
