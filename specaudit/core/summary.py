"""Sums over the cases of a run: one record an arm, and the document that becomes `report.json`.

What was not measured takes part in no share: an arm without a measured case has no exact match rather than one of 0 %.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specaudit.core.gate import decide
from specaudit.core.shares import share
from specaudit.core.vocabulary import Check, Sync, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from specaudit.core.gate import Decision
    from specaudit.core.records import CaseResult, Finding, ModelRecord, UnitTiming
    from specaudit.core.shares import Share
    from specaudit.core.vocabulary import RunVerdict

REPORT_SCHEMA_VERSION = 1
"""Version of the document that `report_document` returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunModels:
    """The models of a run; no table is printed without them."""

    target: ModelRecord
    """The target as loaded."""

    draft: ModelRecord | None
    """The draft as loaded, or None when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A finding and the case that it was found in."""

    case_id: str
    """Case of the finding."""

    unit: int
    """Unit of the arm, counted from 0."""

    call: int
    """Decoder call within the unit, counted from 0."""

    finding: Finding
    """The failed check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonCount:
    """How many cases give the same reason."""

    reason: str
    """The reason or error message, as the cases give it."""

    count: int
    """Cases that give it, at least 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmSummary:
    """Everything known about one combination of decoder, batch size and draft length."""

    decoder: str
    """Decoder as named on the command line."""

    batch_size: int
    """Planned rows a batch."""

    draft_tokens: int
    """Planned draft length K."""

    verdict: RunVerdict
    """What the arm's finished cases amount to by themselves, judged as a run would be."""

    cases: int
    """Finished cases, unmeasured ones included; at least 1."""

    prompts: int
    """Different prompts among the cases, by digest: the independent trials."""

    calls: int
    """Decoder calls that the cases ran in: the independent batches."""

    verdicts: Mapping[Verdict, int]
    """Cases by verdict; every verdict is present."""

    syncs: Mapping[Sync, int]
    """Cases by sync; every sync is present."""

    latent: int
    """Cases that are identical and violated: corruption that exact match cannot see."""

    exact_match: Share | None
    """Identical among measured cases, or None when none was measured."""

    mean_partial_match: float | None
    """Mean share of tokens before the divergence over measured cases, in [0, 1], or None when none was measured."""

    acceptance: Share | None
    """Accepted among proposed draft tokens, pooled over cases, or None when nothing was proposed or observed."""

    violated: Share | None
    """Violated among observed cases (clean or violated), or None when none was observed."""

    violated_checks: Mapping[Check, int]
    """Cases by check that failed in them; every check is present, and a case counts once for each."""

    first_violation: Violation | None
    """Earliest finding by unit, call, step, row and query, or None."""

    generated_tokens: int
    """Tokens of the measured outputs."""

    tokens_per_second: float | None
    """Tokens that the decoder returned a second, tracing included, or None when no time was taken."""

    unobserved: tuple[ReasonCount, ...]
    """Why inner state was not observed, most frequent first."""

    errors: tuple[ReasonCount, ...]
    """Why cases are unmeasured, most frequent first."""

    @property
    def is_failing(self) -> bool:
        """Return whether a case of the arm diverged or violated a check."""
        return bool(self.verdicts[Verdict.DIVERGED] or self.syncs[Sync.VIOLATED])


def summarise(cases: Sequence[CaseResult], timings: Sequence[UnitTiming]) -> tuple[ArmSummary, ...]:
    """Return one summary for each arm that has a case, in order of first appearance.

    Timings of arms without a case are left out.
    """
    cases_by_arm: dict[tuple[str, int, int], list[CaseResult]] = {}
    for case in cases:
        cases_by_arm.setdefault(_arm_key(case), []).append(case)
    timings_by_arm: dict[tuple[str, int, int], list[UnitTiming]] = {key: [] for key in cases_by_arm}
    for timing in timings:
        timings_by_arm.get(_arm_key(timing), []).append(timing)
    return tuple(_summarise_arm(arm_cases, timings_by_arm[key]) for key, arm_cases in cases_by_arm.items())


def report_document(
    summaries: Sequence[ArmSummary],
    cases: Sequence[CaseResult],
    decision: Decision,
    *,
    planned_cases: int,
    models: RunModels | None = None,
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
        "totals": _totals_document(summaries, cases, planned_cases),
        "arms": [_arm_document(summary) for summary in summaries],
        "failing_case_ids": [case.case_id for case in cases if is_failing(case)],
        "unmeasured_case_ids": [case.case_id for case in cases if case.verdict is Verdict.UNMEASURED],
    }


def is_failing(case: CaseResult) -> bool:
    """Return whether a case diverged or violated a check; an unmeasured case alone is not a finding."""
    return case.verdict is Verdict.DIVERGED or case.sync is Sync.VIOLATED


def first_violation(cases: Iterable[CaseResult]) -> Violation | None:
    """Return the earliest finding of the violated cases by unit, call, step, row and query, or None."""
    violations = (
        Violation(case_id=case.case_id, unit=case.unit, call=case.call, finding=finding)
        for case in cases
        if case.sync is Sync.VIOLATED
        for finding in case.findings
    )
    return min(violations, key=_moment, default=None)


def _moment(violation: Violation) -> tuple[int, int, int, int, int]:
    finding = violation.finding
    return (violation.unit, violation.call, finding.step, finding.row, finding.query)


def _arm_key(record: CaseResult | UnitTiming) -> tuple[str, int, int]:
    return (record.decoder, record.batch_size, record.draft_tokens)


def _summarise_arm(cases: Sequence[CaseResult], timings: Sequence[UnitTiming]) -> ArmSummary:
    measured = [case for case in cases if case.verdict is not Verdict.UNMEASURED]
    verdicts = {verdict: sum(case.verdict is verdict for case in cases) for verdict in Verdict}
    syncs = {sync: sum(case.sync is sync for case in cases) for sync in Sync}
    violated = [case for case in cases if case.sync is Sync.VIOLATED]
    partial_matches = [case.partial_match for case in measured if case.partial_match is not None]
    return ArmSummary(
        decoder=cases[0].decoder,
        batch_size=cases[0].batch_size,
        draft_tokens=cases[0].draft_tokens,
        verdict=decide(cases, planned=len(cases)).verdict,
        cases=len(cases),
        prompts=len({case.prompt_digest for case in cases}),
        calls=len({(case.unit, case.call) for case in cases}),
        verdicts=verdicts,
        syncs=syncs,
        latent=sum(case.verdict is Verdict.IDENTICAL for case in violated),
        exact_match=_share_or_none(verdicts[Verdict.IDENTICAL], len(measured)),
        mean_partial_match=sum(partial_matches) / len(partial_matches) if partial_matches else None,
        acceptance=_acceptance(cases),
        violated=_share_or_none(len(violated), len(cases) - syncs[Sync.UNOBSERVED]),
        violated_checks={
            check: sum(any(finding.check is check for finding in case.findings) for case in violated) for check in Check
        },
        first_violation=first_violation(cases),
        generated_tokens=sum(len(case.output_ids or ()) for case in measured),
        tokens_per_second=_tokens_per_second(timings),
        unobserved=_reason_counts(
            case.sync_reason or "no reason was recorded" for case in measured if case.sync is Sync.UNOBSERVED
        ),
        errors=_reason_counts(
            case.error or "no error was recorded" for case in cases if case.verdict is Verdict.UNMEASURED
        ),
    )


def _share_or_none(count: int, total: int) -> Share | None:
    return share(count, total) if total else None


def _acceptance(cases: Iterable[CaseResult]) -> Share | None:
    """Pool the cases that have both counts."""
    observed = [
        (case.accepted_tokens, case.proposed_tokens)
        for case in cases
        if case.accepted_tokens is not None and case.proposed_tokens is not None
    ]
    return _share_or_none(sum(accepted for accepted, _ in observed), sum(proposed for _, proposed in observed))


def _tokens_per_second(timings: Sequence[UnitTiming]) -> float | None:
    seconds = sum(timing.seconds for timing in timings)
    return sum(timing.generated_tokens for timing in timings) / seconds if seconds > 0 else None


def _reason_counts(reasons: Iterable[str]) -> tuple[ReasonCount, ...]:
    return tuple(ReasonCount(reason=reason, count=count) for reason, count in Counter(reasons).most_common())


def _totals_document(
    summaries: Sequence[ArmSummary], cases: Sequence[CaseResult], planned_cases: int
) -> dict[str, Any]:
    return {
        "planned_cases": planned_cases,
        "cases": len(cases),
        "prompts": len({case.prompt_digest for case in cases}),
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
        "verdict": summary.verdict.value,
        "cases": summary.cases,
        "prompts": summary.prompts,
        "calls": summary.calls,
        "verdicts": {verdict.value: count for verdict, count in summary.verdicts.items()},
        "syncs": {sync.value: count for sync, count in summary.syncs.items()},
        "latent": summary.latent,
        "exact_match": _share_document(summary.exact_match),
        "mean_partial_match": summary.mean_partial_match,
        "acceptance": _share_document(summary.acceptance),
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
