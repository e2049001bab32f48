"""Cases made by hand."""

from __future__ import annotations

from typing import Any

from specaudit.core.comparison import first_divergence, partial_match
from specaudit.core.records import Arm, CaseResult, Finding, case_id
from specaudit.core.vocabulary import Check, Sync, Verdict

POS_FINDING = Finding(
    check=Check.POS,
    step=2,
    row=1,
    query=0,
    stream_index=14,
    layer=None,
    expected=14,
    actual=18,
    message="token 14 of the row's stream was given position 18",
)


def made_case(
    *,
    prompt_id: str = "p",
    reference: tuple[int, ...] = (5, 6),
    output: tuple[int, ...] | None = (5, 6),
    sync: Sync = Sync.CERTIFIED,
    **changes: Any,
) -> CaseResult:
    """Return a case consistent in itself; `changes` replace fields."""
    arm = Arm(decoder="eqspec", batch_size=4, draft_tokens=4, seed=0)
    divergence = None if output is None else first_divergence(reference, output)
    verdict = Verdict.UNMEASURED if output is None else Verdict.IDENTICAL if divergence is None else Verdict.DIVERGED
    fields: dict[str, Any] = {
        "case_id": case_id(arm, prompt_id),
        "decoder": arm.decoder,
        "batch_size": arm.batch_size,
        "draft_tokens": arm.draft_tokens,
        "seed": arm.seed,
        "unit": 0,
        "call": 0,
        "prompt_id": prompt_id,
        "prompt_digest": f"digest of {prompt_id}",
        "category": None,
        "prompt_ids": (1, 2),
        "reference_ids": reference,
        "output_ids": output,
        "reference_text": "reference",
        "output_text": None if output is None else "output",
        "verdict": verdict,
        "sync": sync,
        "sync_reason": "not seen" if sync is Sync.UNOBSERVED else None,
        "findings": (POS_FINDING,) if sync is Sync.VIOLATED else (),
        "first_divergence": divergence,
        "partial_match": None if output is None else partial_match(reference, output),
        "proposed_tokens": 4,
        "accepted_tokens": 2,
        "target_steps": 3,
        "error": "RuntimeError: boom" if output is None else None,
    }
    return CaseResult(**(fields | changes))
