"""Whether the finished cases of a run directory can be taken over: what a run wrote agrees with itself and its plan.

A damaged or edited line would end in a report as if it had been measured. Whoever wants to forge a case throughout still
can; this is a check, not a signature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.comparison import first_divergence, partial_match
from specaudit.core.errors import InputError
from specaudit.core.records import case_id
from specaudit.core.stored_run import arm_of
from specaudit.core.vocabulary import Compared, Sync, Verdict
from specaudit.reference import ids_digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from specaudit.core.records import AuditPlan, CaseResult
    from specaudit.core.stored_run import StoredRun


def check_samples(stored: StoredRun) -> None:
    """Raise InputError for the first finished case that contradicts itself, the plan or another case."""
    seen: dict[str, CaseResult] = {}
    for case in (case for unit in stored.units for case in unit.cases):
        first = seen.setdefault(case.prompt_id, case)
        contradictions = (*_with_plan(case, stored.plan), *_with_itself(case), *_with_other(case, first))
        if contradictions:
            raise InputError(
                f"case '{case.case_id}' cannot be right: {contradictions[0]}",
                where=str(stored.directory.path / "samples.jsonl"),
                way_out=f"the file was edited; start again: specaudit run --from {stored.directory.path}",
            )


def _with_plan(case: CaseResult, plan: AuditPlan) -> Iterator[str]:
    if case.case_id != case_id(arm_of(case), case.prompt_id):
        yield "its identifier is that of another case"
    is_planned = (
        case.decoder in plan.decoders
        and case.batch_size in plan.batch_sizes
        and case.draft_tokens in {None, *plan.draft_tokens}
        and case.seed in {None, *plan.seeds}
    )
    if not is_planned:
        yield "its arm is not in the plan"


def _with_itself(case: CaseResult) -> Iterator[str]:
    if case.prompt_digest != ids_digest(case.prompt_ids):
        yield "its prompt_digest is that of another prompt"
    if case.verdict is not _verdict(case):
        yield f"it is {case.verdict.value}, its output and error say {_verdict(case).value}"
    is_compared = case.verdict is not Verdict.UNMEASURED and case.compared is Compared.IDS
    divergence = first_divergence(case.reference_ids, case.output_ids or ()) if is_compared else None
    share = partial_match(case.reference_ids, case.output_ids or ()) if is_compared else None
    if (case.first_divergence, case.partial_match) != (divergence, share):
        yield "its first_divergence or partial_match is that of another output"
    if (case.sync is Sync.VIOLATED) is not bool(case.findings):
        yield f"it is {case.sync.value} with {len(case.findings)} findings"


def _verdict(case: CaseResult) -> Verdict:
    """Return the verdict that the outputs of a case have."""
    if case.error is not None:
        return Verdict.UNMEASURED
    if case.compared is Compared.TEXT:
        is_equal = case.output_text == case.reference_text
    else:
        is_equal = case.output_ids == case.reference_ids
    return Verdict.IDENTICAL if is_equal else Verdict.DIVERGED


def _with_other(case: CaseResult, other: CaseResult) -> Iterator[str]:
    if (case.prompt_ids, case.reference_ids) != (other.prompt_ids, other.reference_ids):
        yield f"case '{other.case_id}' has another prompt or reference under the same name"
