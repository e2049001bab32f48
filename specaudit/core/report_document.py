"""The document that becomes `report.json`: everything in the summaries as plain JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from specaudit.core.summary import ROUGE_BLIND_ABOVE, is_failing, reference_ends
from specaudit.core.vocabulary import Sync, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.core.gate import Decision
    from specaudit.core.records import CaseResult, LeftOut, ModelRecord
    from specaudit.core.scores import Control
    from specaudit.core.shares import Share
    from specaudit.core.summary import ArmSummary, RunModels, Violation

REPORT_SCHEMA_VERSION = 1
"""Version of the document that `report_document` returns."""


def report_document(
    summaries: Sequence[ArmSummary],
    cases: Sequence[CaseResult],
    decision: Decision,
    *,
    planned_cases: int,
    models: RunModels | None = None,
    left_out: Sequence[LeftOut] = (),
    notices: Sequence[str] = (),
    controls: Sequence[Control] = (),
) -> dict[str, Any]:
    """Return the content of `report.json`: the decision, each arm, totals and the ids of the cases to look at.

    Everything in it is plain JSON; what was not measured is null. Totals hold counts only: the same prompts run in
    every arm, so an interval over all cases would pretend to more trials than there are.
    """
    return {
        "schema_version": REPORT_SCHEMA_VERSION,
        "verdict": decision.verdict.value,
        "exit_code": decision.exit_code,
        "reasons": list(decision.reasons),
        "models": None if models is None else _models_document(models),
        "totals": _totals_document(summaries, cases, planned_cases, models),
        "left_out": [asdict(combination) for combination in left_out],
        "notices": list(notices),
        "controls": [_control_document(control) for control in controls],
        "arms": [_arm_document(summary) for summary in summaries],
        "failing_case_ids": [case.case_id for case in cases if is_failing(case)],
        "unmeasured_case_ids": [case.case_id for case in cases if case.verdict is Verdict.UNMEASURED],
    }


def _control_document(control: Control) -> dict[str, Any]:
    floor = control.floor
    return {
        "batch_size": control.batch_size,
        "draft_tokens": control.draft_tokens,
        "problem": control.problem,
        "excused_regret": None if floor is None else floor.excused,
        "accused_regret": None if floor is None else floor.accused,
        "outputs": None if floor is None else floor.outputs,
        "tokens": None if floor is None else floor.tokens,
        "departures": None if floor is None else floor.departures,
    }


def _totals_document(
    summaries: Sequence[ArmSummary], cases: Sequence[CaseResult], planned_cases: int, models: RunModels | None
) -> dict[str, Any]:
    ends = None if models is None else reference_ends(cases, models.target.eos_token_ids)
    return {
        "planned_cases": planned_cases,
        "cases": len(cases),
        "prompts": len({case.prompt_digest for case in cases}),
        "references": None if ends is None else ends.prompts,
        "references_at_eos": None if ends is None else ends.at_eos,
        "arms": len(summaries),
        "verdicts": {verdict.value: sum(case.verdict is verdict for case in cases) for verdict in Verdict},
        "syncs": {sync.value: sum(case.sync is sync for case in cases) for sync in Sync},
        "latent": sum(summary.latent for summary in summaries),
        "generated_tokens": sum(summary.generated_tokens for summary in summaries),
    }


def _arm_document(summary: ArmSummary) -> dict[str, Any]:
    return {
        "decoder": summary.decoder,
        "batch_size": summary.batch_size,
        "draft_tokens": summary.draft_tokens,
        "seed": summary.seed,
        "verdict": summary.verdict.value,
        "cases": summary.cases,
        "prompts": summary.prompts,
        "calls": summary.calls,
        "verdicts": {verdict.value: count for verdict, count in summary.verdicts.items()},
        "syncs": {sync.value: count for sync, count in summary.syncs.items()},
        "latent": summary.latent,
        "exact_match": _share_document(summary.exact_match),
        "exact_match_by_batch": _share_document(summary.exact_match_by_call),
        "mean_partial_match": summary.mean_partial_match,
        "hazard": _share_document(summary.hazard),
        "categories": [
            {"category": one.category, "cases": one.cases, "exact_match": _share_document(one.exact_match)}
            for one in summary.categories
        ],
        "compared_as_text": summary.compared_as_text,
        "symptoms": {symptom.value: count for symptom, count in summary.symptoms.items()},
        "rouge_blind": _share_document(summary.rouge_blind),
        "rouge_blind_above": ROUGE_BLIND_ABOVE,
        "rouge_not_scored": summary.rouge_not_scored,
        "displaced": [
            {"case_id": one.case_id, "owner": one.owner, "permuted": one.is_permuted}
            for one in summary.displacements.values()
        ],
        "acceptance": _share_document(summary.acceptance),
        "coverage": None if summary.coverage is None else asdict(summary.coverage),
        "causes": {cause.value: count for cause, count in summary.causes.items() if count},
        "violated": _share_document(summary.violated),
        "violated_checks": {check.value: count for check, count in summary.violated_checks.items()},
        "first_violation": _violation_document(summary.first_violation),
        "generated_tokens": summary.generated_tokens,
        "tokens_per_second": summary.tokens_per_second,
        "unobserved": [{"reason": item.reason, "count": item.count} for item in summary.unobserved],
        "errors": [{"reason": item.reason, "count": item.count} for item in summary.errors],
    }


def _share_document(value: Share | None) -> dict[str, Any] | None:
    if value is None:
        return None
    return {"count": value.count, "total": value.total, "rate": value.rate, "low": value.low, "high": value.high}


def _violation_document(violation: Violation | None) -> dict[str, Any] | None:
    if violation is None:
        return None
    finding = violation.finding
    return {
        "case_id": violation.case_id,
        "unit": violation.unit,
        "call": violation.call,
        "check": finding.check.value,
        "step": finding.step,
        "row": finding.row,
        "query": finding.query,
        "stream_index": finding.stream_index,
        "layer": finding.layer,
        "expected": finding.expected,
        "actual": finding.actual,
        "message": finding.message,
    }


def _models_document(models: RunModels) -> dict[str, Any]:
    return {
        "target": _model_document(models.target),
        "draft": None if models.draft is None else _model_document(models.draft),
    }


def _model_document(model: ModelRecord) -> dict[str, Any]:
    return {
        "source": model.source,
        "digest": model.digest,
        "architecture": model.architecture,
        "parameters": model.parameters,
        "dtype": model.dtype,
    }
