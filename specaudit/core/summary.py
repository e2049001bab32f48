"""Sums over the cases of a run: one record an arm.

What was not measured takes part in no share: an arm without a measured case has no exact match rather than one of 0 %.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from specaudit.core.clusters import Cluster, cluster_share
from specaudit.core.coverage import total_coverage
from specaudit.core.displacement import displacements
from specaudit.core.gate import decide
from specaudit.core.hazard import hazard
from specaudit.core.shares import share
from specaudit.core.vocabulary import Cause, Check, Compared, Symptom, Sync, Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from specaudit.core.displacement import Displacement
    from specaudit.core.records import CaseResult, Coverage, Finding, ModelRecord, UnitTiming
    from specaudit.core.shares import Share
    from specaudit.core.vocabulary import RunVerdict

ROUGE_BLIND_ABOVE = 0.9
"""ROUGE-L above which a reader of the metric takes an output for right. Outputs with duplicated, dropped or padded
tokens keep 0.95 to 0.98."""

BOOTSTRAP_SEED = 0
"""The same cases always give the same interval."""


class ArmKey(NamedTuple):
    """What tells the arms of a run apart."""

    decoder: str
    batch_size: int | None
    draft_tokens: int | None
    seed: int | None


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
class CategorySummary:
    """The cases of one category in one arm."""

    category: str | None
    """Name that the prompt set gives, or None for prompts that it leaves without one."""

    cases: int
    """Finished cases, unmeasured ones included; at least 1."""

    exact_match: Share | None
    """Identical among measured cases, or None when none was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceEnds:
    """How the reference's outputs end. Where none ends in EOS, a decoder that runs past it cannot be told."""

    prompts: int
    """Different prompts, by digest, that have a reference."""

    at_eos: int
    """Those of them whose reference ends in EOS, the rest being cut at the most new tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmSummary:
    """Everything known about one combination of decoder, batch size, draft length and seed."""

    decoder: str
    """Decoder as named on the command line, or the name of a recording."""

    batch_size: int | None
    """Planned rows a batch, or None where a recording does not say."""

    draft_tokens: int | None
    """Planned draft length K, or None for a decoder that does not speculate or where a recording does not say."""

    seed: int | None
    """Seed of draft and decoder, or None as for `draft_tokens`."""

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
    """Identical among measured cases, or None when none was measured; its interval takes prompts as independent."""

    exact_match_by_call: Share | None
    """The same with an interval over decoder calls, which fail together; None where `cluster_share` gives none."""

    mean_partial_match: float | None
    """Mean share of tokens before the divergence, in [0, 1], identical outputs counted as 1; over measured cases that
    have tokens, or None when none has."""

    hazard: Share | None
    """Divergences among tokens at risk, or None when no token was."""

    categories: tuple[CategorySummary, ...]
    """Cases by category, in order of first appearance; empty where no case has one."""

    compared_as_text: int
    """Measured cases whose verdict compares texts, as there are no ids: different ids may go unseen."""

    symptoms: Mapping[Symptom, int]
    """Cases by symptom; every symptom is present, and a case counts once for each."""

    rouge_blind: Share | None
    """Diverged cases that ROUGE-L scores above `ROUGE_BLIND_ABOVE`, among those scored, or None when none was."""

    rouge_not_scored: int
    """Diverged cases that ROUGE-L cannot score: a text has no word that it keeps, or there is no text."""

    displacements: Mapping[str, Displacement]
    """Diverged outputs that are another prompt's, by case id."""

    acceptance: Share | None
    """Accepted among proposed draft tokens, pooled over cases, or None when nothing was proposed or observed."""

    coverage: Coverage | None
    """Patterns of acceptance that its cases went through together, or None when none was observed."""

    causes: Mapping[Cause, int]
    """Failing or tied cases by the origin of their failure; every cause is present."""

    violated: Share | None
    """Violated among observed cases (clean or violated), or None when none was observed."""

    violated_checks: Mapping[Check, int]
    """Cases by check that failed in them; every check is present, and a case counts once for each."""

    first_violation: Violation | None
    """Earliest finding by unit, call, step, row and query, or None."""

    generated_tokens: int
    """Tokens of the measured outputs."""

    tokens_per_second: float | None
    """Tokens that the decoder returned a second, tracing included, or None when nothing was measured or no time taken."""

    unobserved: tuple[ReasonCount, ...]
    """Why inner state was not observed, most frequent first."""

    errors: tuple[ReasonCount, ...]
    """Why cases are unmeasured, most frequent first."""

    @property
    def is_failing(self) -> bool:
        """Return whether a case of the arm diverged or violated a check."""
        return bool(self.verdicts[Verdict.DIVERGED] or self.syncs[Sync.VIOLATED])


def summarise(
    cases: Sequence[CaseResult], timings: Sequence[UnitTiming], *, requires_coverage: bool = True
) -> tuple[ArmSummary, ...]:
    """Return one summary for each arm that has a case, in order of first appearance.

    Timings of arms without a case are left out.
    """
    cases_by_arm: dict[ArmKey, list[CaseResult]] = {}
    for case in cases:
        cases_by_arm.setdefault(arm_key(case), []).append(case)
    timings_by_arm: dict[ArmKey, list[UnitTiming]] = {key: [] for key in cases_by_arm}
    for timing in timings:
        timings_by_arm.get(arm_key(timing), []).append(timing)
    return tuple(
        _summarise_arm(key, arm_cases, timings_by_arm[key], requires_coverage=requires_coverage)
        for key, arm_cases in cases_by_arm.items()
    )


def arm_key(record: CaseResult | UnitTiming | ArmSummary) -> ArmKey:
    """Return which arm a record belongs to."""
    return ArmKey(record.decoder, record.batch_size, record.draft_tokens, record.seed)


def is_failing(case: CaseResult) -> bool:
    """Return whether a case diverged or violated a check; an unmeasured case alone is not a finding."""
    return case.verdict is Verdict.DIVERGED or case.sync is Sync.VIOLATED


def reference_ends(cases: Iterable[CaseResult], eos_token_ids: Collection[int]) -> ReferenceEnds:
    """Return how the reference ends for the prompts of `cases`; a prompt without a reference takes no part."""
    last_ids = {case.prompt_digest: case.reference_ids[-1] for case in cases if case.reference_ids}
    return ReferenceEnds(prompts=len(last_ids), at_eos=sum(token in eos_token_ids for token in last_ids.values()))


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


def _summarise_arm(
    key: ArmKey, cases: Sequence[CaseResult], timings: Sequence[UnitTiming], *, requires_coverage: bool
) -> ArmSummary:
    measured = [case for case in cases if case.verdict is not Verdict.UNMEASURED]
    verdicts = {verdict: sum(case.verdict is verdict for case in cases) for verdict in Verdict}
    syncs = {sync: sum(case.sync is sync for case in cases) for sync in Sync}
    violated = [case for case in cases if case.sync is Sync.VIOLATED]
    partial_matches = [case.partial_match for case in measured if case.partial_match is not None]
    rouge = [case.rouge_l for case in cases if case.verdict is Verdict.DIVERGED and case.rouge_l is not None]
    return ArmSummary(
        **key._asdict(),
        verdict=decide(cases, planned=len(cases), requires_coverage=requires_coverage).verdict,
        cases=len(cases),
        prompts=len({case.prompt_digest for case in cases}),
        calls=len({(case.unit, case.call) for case in cases}),
        verdicts=verdicts,
        syncs=syncs,
        latent=sum(case.verdict is Verdict.IDENTICAL for case in violated),
        exact_match=_share_or_none(verdicts[Verdict.IDENTICAL], len(measured)),
        exact_match_by_call=cluster_share(_calls(measured), seed=BOOTSTRAP_SEED),
        mean_partial_match=sum(partial_matches) / len(partial_matches) if partial_matches else None,
        hazard=hazard(measured),
        categories=_categories(cases),
        compared_as_text=sum(case.compared is Compared.TEXT for case in measured),
        symptoms={
            symptom: sum(any(found.symptom is symptom for found in case.symptoms) for case in cases)
            for symptom in Symptom
        },
        rouge_blind=_share_or_none(sum(score > ROUGE_BLIND_ABOVE for score in rouge), len(rouge)),
        rouge_not_scored=verdicts[Verdict.DIVERGED] - len(rouge),
        displacements=displacements(cases),
        acceptance=_acceptance(cases),
        coverage=total_coverage(cases),
        causes={cause: sum(bool(case.causes) and case.causes[0].cause is cause for case in cases) for cause in Cause},
        violated=_share_or_none(len(violated), len(cases) - syncs[Sync.UNOBSERVED]),
        violated_checks={
            check: sum(any(finding.check is check for finding in case.findings) for case in violated) for check in Check
        },
        first_violation=first_violation(cases),
        generated_tokens=sum(len(case.output_ids or ()) for case in measured),
        tokens_per_second=_tokens_per_second(timings, {case.unit for case in measured}),
        unobserved=_reason_counts(
            case.sync_reason or "no reason was recorded" for case in measured if case.sync is Sync.UNOBSERVED
        ),
        errors=_reason_counts(
            case.error or "no error was recorded" for case in cases if case.verdict is Verdict.UNMEASURED
        ),
    )


def _calls(cases: Iterable[CaseResult]) -> list[Cluster]:
    """Return how many of the cases of each decoder call are identical."""
    verdicts: dict[tuple[int, int], list[Verdict]] = {}
    for case in cases:
        verdicts.setdefault((case.unit, case.call), []).append(case.verdict)
    return [Cluster(count=call.count(Verdict.IDENTICAL), total=len(call)) for call in verdicts.values()]


def _categories(cases: Iterable[CaseResult]) -> tuple[CategorySummary, ...]:
    by_category: dict[str | None, list[Verdict]] = {}
    for case in cases:
        by_category.setdefault(case.category, []).append(case.verdict)
    if set(by_category) == {None}:
        return ()
    return tuple(
        CategorySummary(
            category=category,
            cases=len(verdicts),
            exact_match=_share_or_none(
                verdicts.count(Verdict.IDENTICAL), len(verdicts) - verdicts.count(Verdict.UNMEASURED)
            ),
        )
        for category, verdicts in by_category.items()
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


def _tokens_per_second(timings: Sequence[UnitTiming], measured_units: Collection[int]) -> float | None:
    """Pool the units that measured something and whose tokens are known: text has none."""
    known = [timing for timing in timings if timing.unit in measured_units and timing.generated_tokens is not None]
    seconds = sum(timing.seconds for timing in known)
    return sum(timing.generated_tokens or 0 for timing in known) / seconds if seconds > 0 else None


def _reason_counts(reasons: Iterable[str]) -> tuple[ReasonCount, ...]:
    return tuple(ReasonCount(reason=reason, count=count) for reason, count in Counter(reasons).most_common())
