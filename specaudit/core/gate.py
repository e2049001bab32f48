"""The gate: one pure function turns the cases of a run into a verdict and an exit code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specaudit.core.vocabulary import Compared, RunVerdict, Sync, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.core.records import CaseResult

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
    cases: Sequence[CaseResult], *, planned: int, interrupted: bool = False, stopped_by: str | None = None
) -> Decision:
    """Judge the finished `cases` of a run that planned `planned` cases; the first match wins.

    `stopped_by` says why cases are missing, where that is known.

    1. A case diverged or violated a check: `failed`, 1, even when other cases are missing.
    2. Interrupted: `interrupted`, 130.
    3. A planned case unmeasured or missing, or nothing planned: `no-evidence`, 3.
    4. Otherwise 0: `lossless`, or `equal-outputs` where the inner state of a case was not observed.
    """
    diverged = sum(case.verdict is Verdict.DIVERGED for case in cases)
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
    if unmeasured or missing or not cases:
        reasons = [f"{unmeasured} of {planned} cases unmeasured"] if unmeasured else []
        reasons += [f"{missing} of {planned} cases not run"] if missing else []
        reasons += [stopped_by] if missing and stopped_by else []
        return Decision(
            verdict=RunVerdict.NO_EVIDENCE,
            exit_code=EXIT_NO_EVIDENCE,
            reasons=tuple(reasons) or ("no cases were planned",),
        )
    unobserved = sum(case.sync is Sync.UNOBSERVED for case in cases)
    if unobserved:
        reasons = [f"inner state not observed in {unobserved} of {len(cases)} cases"]
        as_text = sum(case.compared is Compared.TEXT for case in cases)
        reasons += [f"{as_text} compared as text"] if as_text else []
        return Decision(verdict=RunVerdict.EQUAL_OUTPUTS, exit_code=EXIT_PASSED, reasons=tuple(reasons))
    certified = sum(case.sync is Sync.CERTIFIED for case in cases)
    seen = "all certified" if certified == len(cases) else "all contexts right"
    reason = f"{len(cases)} of {len(cases)} cases identical, {seen}"
    return Decision(verdict=RunVerdict.LOSSLESS, exit_code=EXIT_PASSED, reasons=(reason,))
