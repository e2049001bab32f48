"""From attempts to the sync of a case.

Every emitted token rests on every token before it. A stream token is sound when at least one time that it was fed, all
checks held, and nothing that the stream's end rests on is a time when they did not; rejected drafts, padding and finished
rows are nobody's support and are not judged. What could have been sound in a step that was not observed is unobserved,
never violated and never clean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specaudit.checks.pos import check_pos
from specaudit.checks.rect import check_rect
from specaudit.checks.resting import harmful_attempts
from specaudit.core.vocabulary import Sync

if TYPE_CHECKING:
    from collections.abc import Iterable

    from specaudit.checks.streams import Attempt, Stream
    from specaudit.core.records import Finding
    from specaudit.trace.records import Step, Trace

CHECKS = (check_rect, check_pos)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the checks say of one case."""

    sync: Sync
    """Outcome."""

    reason: str | None
    """What was not observed, for `unobserved`; else None."""

    findings: tuple[Finding, ...]
    """First failure of each check, earliest first."""


def judge(trace: Trace, stream: Stream) -> Judgement:
    """Return the sync of one case of a traced call."""
    if trace.obstacles:
        return _unobserved(trace.obstacles[0])
    if len(stream.tokens) == stream.prompt_length:
        return _unobserved("the output is empty")
    failures = {
        attempt: _failures(trace.steps[attempt.step], attempt)
        for attempts in (*stream.attempts[:-1], *stream.shared[:-1])  # nothing rests on the last token
        for attempt in attempts
    }
    unsound: list[Finding] = []
    unobserved: str | None = None
    for index, (attempts, shared) in enumerate(zip(stream.attempts[:-1], stream.shared[:-1], strict=True)):
        if any(failures[attempt] == () for attempt in (*attempts, *shared)):
            continue
        blind = next((attempt for attempt in attempts if failures[attempt] is None), None)
        if attempts and blind is None:
            unsound += failures[attempts[0]] or ()  # the first time it was fed: later ones follow from it
        elif blind is not None:
            unobserved = unobserved or f"step {blind.step}: {trace.steps[blind.step].obstacles[0]}"
        else:
            unobserved = unobserved or _never_fed(trace, stream, index)
    for attempt in harmful_attempts(trace, stream, failures):
        unsound += failures[attempt] or ()
    if unsound:
        return Judgement(sync=Sync.VIOLATED, reason=None, findings=_first_of_each_check(unsound))
    if unobserved is not None:
        return _unobserved(unobserved)
    return Judgement(sync=Sync.CLEAN, reason=None, findings=())


def _failures(step: Step, attempt: Attempt) -> tuple[Finding, ...] | None:
    """Return the findings of one attempt, () when sound, None when the step was not observed."""
    if step.obstacles:
        return None
    return tuple(finding for check in CHECKS if (finding := check(step, attempt)) is not None)


def _never_fed(trace: Trace, stream: Stream, index: int) -> str:
    if not trace.steps:
        return "no forward of the target was seen"
    if not any(step.is_complete for step in trace.steps):
        return "no forward went through all attention layers of the target"
    obstacle = next((step.obstacles[0] for step in trace.steps if step.obstacles), None)
    if obstacle is not None:
        return obstacle
    place = f"output token {index - stream.prompt_length}" if index >= stream.prompt_length else f"prompt token {index}"
    return f"no observed forward of the target was fed {place}"


def _unobserved(reason: str) -> Judgement:
    return Judgement(sync=Sync.UNOBSERVED, reason=reason, findings=())


def _first_of_each_check(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    ordered = sorted(findings, key=lambda finding: (finding.step, finding.row, finding.query))
    return tuple({finding.check: finding for finding in reversed(ordered)}.values())[::-1]
