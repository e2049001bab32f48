"""From the trace of a call to the sync of its cases.

A case is certified when the target chose every token of its output at exactly the token's prefix, in a clean context.
What is not certified is explained by the checks: a stream token is sound when at least one time that it was fed all of
them held, and nothing that the stream's end rests on is a time when they did not. Rejected drafts, padding and finished
rows are nobody's support and are not judged. What could have been sound in a step that was not observed is unobserved,
never violated and never clean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specaudit.checks.kv import check_origin
from specaudit.checks.pos import check_pos
from specaudit.checks.rect import check_rect
from specaudit.checks.resting import harmful_attempts
from specaudit.checks.warrant import check_choice
from specaudit.checks.warrants import Standing, TokenWarrant, is_read_for_each, output_warrants
from specaudit.core.vocabulary import Sync
from specaudit.trace.growth import grow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from specaudit.checks.streams import Attempt, Stream
    from specaudit.core.records import Finding
    from specaudit.trace.records import Step, Trace
    from specaudit.trace.trie import PrefixTrie

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


def judge(trace: Trace, streams: Sequence[Stream], *, logits_are_processed: bool = False) -> list[Judgement]:
    """Return the sync of every case of a traced call, whose streams `trace_streams` returned.

    Where processors change logits before a token is chosen, what the target chose is not known: contexts are judged, and a
    case is at best clean.
    """
    judging = _Judging(trace, streams, grow(trace), logits_are_processed=logits_are_processed)
    return [judging.judge(stream) for stream in streams]


class _Judging:
    """Judges the cases of one call."""

    def __init__(
        self, trace: Trace, streams: Sequence[Stream], trie: PrefixTrie, *, logits_are_processed: bool
    ) -> None:
        self.trace = trace
        self.streams = streams
        self.trie = trie
        self.logits_are_processed = logits_are_processed

    def judge(self, stream: Stream) -> Judgement:
        if self.trace.obstacles:
            return _unobserved(self.trace.obstacles[0])
        if len(stream.tokens) == stream.prompt_length:
            return _unobserved("the output is empty")
        warrants = output_warrants(self.trie, stream)
        unwarranted = next((warrant for warrant in warrants if not self._stands(warrant)), None)
        if unwarranted is None and all(is_read_for_each(warrant, stream, self.streams) for warrant in warrants):
            return self._sound()
        findings, unobserved = self._placed_findings(stream)
        if unwarranted is not None and not findings:
            findings, unobserved = self._why(unwarranted, stream, unobserved)
        if findings:
            return Judgement(sync=Sync.VIOLATED, reason=None, findings=_first_of_each_check(findings))
        return self._sound() if unwarranted is None else _unobserved(unobserved or "nothing shows why")

    def _stands(self, warrant: TokenWarrant) -> bool:
        if self.logits_are_processed:
            return bool(warrant.readings)
        return warrant.standing is Standing.WARRANTED

    def _sound(self) -> Judgement:
        sync = Sync.CLEAN if self.logits_are_processed else Sync.CERTIFIED
        return Judgement(sync=sync, reason=None, findings=())

    def _placed_findings(self, stream: Stream) -> tuple[list[Finding], str | None]:
        """Return what the checks find in the places where the stream's tokens were fed, and what was not observed."""
        failures = {
            attempt: _failures(self.trace.steps[attempt.step], attempt)
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
                unobserved = unobserved or f"step {blind.step}: {self.trace.steps[blind.step].obstacles[0]}"
            else:
                unobserved = unobserved or self._never_fed(stream, index)
        for attempt in harmful_attempts(self.trace, stream, failures):
            unsound += failures[attempt] or ()
        return unsound, unobserved

    def _why(self, warrant: TokenWarrant, stream: Stream, unobserved: str | None) -> tuple[list[Finding], str | None]:
        """Return the finding that explains a token without a warrant where the checks found nothing, or what was unseen."""
        if warrant.standing is Standing.LOGITS_UNSEEN:
            return [], f"the logits that chose output token {warrant.stream_index - stream.prompt_length} were not seen"
        if unobserved is not None:
            return [], unobserved
        blind = next((step for step in self.trace.steps if step.obstacles), None)
        if blind is not None:
            return [], f"step {blind.index}: {blind.obstacles[0]}"
        if warrant.standing is Standing.NOT_CHOSEN:
            return [check_choice(warrant, stream)], None
        origin = check_origin(self.trie, stream, warrant)
        return ([origin], None) if origin is not None else ([], self._never_fed(stream, warrant.stream_index))

    def _never_fed(self, stream: Stream, index: int) -> str:
        steps = self.trace.steps
        if not steps:
            return "no forward of the target was seen"
        if not any(step.is_complete for step in steps):
            return "no forward went through all attention layers of the target"
        obstacle = next((step.obstacles[0] for step in steps if step.obstacles), None)
        if obstacle is not None:
            return obstacle
        is_output = index >= stream.prompt_length
        place = f"output token {index - stream.prompt_length}" if is_output else f"prompt token {index}"
        return f"no observed forward of the target was fed {place}"


def _failures(step: Step, attempt: Attempt) -> tuple[Finding, ...] | None:
    """Return the findings of one attempt, () when sound, None when the step was not observed."""
    if step.obstacles:
        return None
    return tuple(finding for check in CHECKS if (finding := check(step, attempt)) is not None)


def _unobserved(reason: str) -> Judgement:
    return Judgement(sync=Sync.UNOBSERVED, reason=reason, findings=())


def _first_of_each_check(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    ordered = sorted(findings, key=lambda finding: (finding.step, finding.row, finding.query))
    return tuple({finding.check: finding for finding in reversed(ordered)}.values())[::-1]
