"""The gate: one pure function turns the cases of a run into a verdict and an exit code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specaudit.core.coverage import coverage_gaps
from specaudit.core.ties import crowded_ties
from specaudit.core.vocabulary import Cause, Compared, RunVerdict, Sync, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from specaudit.core.coverage import Gap
    from specaudit.core.records import CaseResult
    from specaudit.core.scores import Control

EXIT_PASSED = 0
EXIT_FINDING = 1
EXIT_USAGE = 2
EXIT_NO_EVIDENCE = 3
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a run amounts to."""

    verdict: RunVerdict
    """Verdict of the run."""

    exit_code: int
    """Exit code of the command: 0 passed, 1 a finding, 3 no evidence, 130 interrupted."""

    reasons: tuple[str, ...]
    """Why, for people; most important first."""


def decide(
    cases: Sequence[CaseResult],
    *,
    planned: int,
    interrupted: bool = False,
    stopped_by: str | None = None,
    controls: Sequence[Control] = (),
    requires_coverage: bool = True,
) -> Decision:
    """Judge the finished `cases` of a run that planned `planned` cases; the first match wins.

    `stopped_by` says why cases are missing, where that is known. A single call that is run again needs no coverage.

    1. A case diverged or violated a check: `failed`, 1, even when other cases are missing. Differences that only a noise
       floor could tell from rounding are no finding where the controls that measure it are not right themselves. Ties
       are one where an arm has far more of them than its controls.
    2. Interrupted: `interrupted`, 130.
    3. A planned case unmeasured or missing, such a control, or nothing planned: `no-evidence`, 3.
    4. An arm that did not go through the patterns of acceptance in which faults show: `insufficient-coverage`, 3.
    5. Otherwise 0: `lossless`, or `equal-outputs` where the inner state of a case was not observed.
    """
    problems = {(one.batch_size, one.draft_tokens): one.problem for one in controls if one.problem is not None}
    undecided = sum(_is_undecided(case, problems) for case in cases)
    diverged = sum(case.verdict is Verdict.DIVERGED for case in cases) - undecided
    violated = sum(case.sync is Sync.VIOLATED for case in cases)
    unmeasured = sum(case.verdict is Verdict.UNMEASURED for case in cases)
    missing = planned - len(cases)
    if diverged or violated:
        reasons = [f"{diverged} of {len(cases)} cases diverged"] if diverged else []
        of_all = "" if diverged else f" of {len(cases)} cases"
        reasons += [f"{violated}{of_all} violated a check"] if violated else []
        reasons += [f"{unmeasured} unmeasured"] if unmeasured else []
        reasons += [f"{missing} not run"] if missing else []
        return Decision(verdict=RunVerdict.FAILED, exit_code=EXIT_FINDING, reasons=tuple(reasons))
    if interrupted:
        reason = f"{len(cases)} of {planned} cases done, no finding among them"
        return Decision(verdict=RunVerdict.INTERRUPTED, exit_code=EXIT_INTERRUPTED, reasons=(reason,))
    if unmeasured or missing or undecided or not cases:
        reasons = [f"{undecided} of {len(cases)} cases differ, {next(iter(problems.values()))}"] if undecided else []
        reasons += [f"{unmeasured} of {planned} cases unmeasured"] if unmeasured else []
        reasons += [f"{missing} of {planned} cases not run"] if missing else []
        reasons += [stopped_by] if missing and stopped_by else []
        return Decision(
            verdict=RunVerdict.NO_EVIDENCE,
            exit_code=EXIT_NO_EVIDENCE,
            reasons=tuple(reasons) or ("no cases were planned",),
        )
    crowded = crowded_ties(cases, controls)
    if crowded is not None:
        return Decision(verdict=RunVerdict.FAILED, exit_code=EXIT_FINDING, reasons=(crowded,))
    gaps = coverage_gaps(cases) if requires_coverage else ()
    if gaps:
        return Decision(
            verdict=RunVerdict.INSUFFICIENT_COVERAGE,
            exit_code=EXIT_NO_EVIDENCE,
            reasons=(f"no finding, but {_named(gaps)}", f"try {gaps[0].way_out}"),
        )
    ties = sum(case.verdict is Verdict.TIE for case in cases)
    identical = f"{len(cases) - ties} of {len(cases)} cases identical"
    tied = [f"{ties} {'tie' if ties == 1 else 'ties'} by rounding"] if ties else []
    unobserved = sum(case.sync is Sync.UNOBSERVED for case in cases)
    if unobserved:
        reasons = [*tied, f"inner state not observed in {unobserved} of {len(cases)} cases"]
        as_text = sum(case.compared is Compared.TEXT for case in cases)
        reasons += [f"{as_text} compared as text"] if as_text else []
        return Decision(verdict=RunVerdict.EQUAL_OUTPUTS, exit_code=EXIT_PASSED, reasons=tuple(reasons))
    certified = sum(case.sync is Sync.CERTIFIED for case in cases)
    seen = "all certified" if certified == len(cases) else "all contexts right"
    return Decision(verdict=RunVerdict.LOSSLESS, exit_code=EXIT_PASSED, reasons=(identical, *tied, seen))


def _is_undecided(case: CaseResult, problems: Mapping[tuple[int, int], str]) -> bool:
    """Return whether only a noise floor could tell why a case differs, and there is none."""
    is_unexplained = bool(case.causes) and case.causes[0].cause is Cause.UNEXPLAINED
    is_open = case.verdict is Verdict.DIVERGED and case.sync is not Sync.VIOLATED and is_unexplained
    return is_open and (case.batch_size or 1, case.draft_tokens or 1) in problems


def _named(gaps: Sequence[Gap]) -> str:
    """Say what the first arm did not go through, and how many more arms there are like it."""
    first = gaps[0]
    batch = "" if first.batch_size is None else f" at batch {first.batch_size}"
    more = f" ({len(gaps) - 1} more)" if len(gaps) > 1 else ""
    return f"{first.decoder}{batch} never saw {' or '.join(first.missing)}{more}"
