"""From the trace of a call to the sync of its cases.

A case is certified when the target chose every token of its output at exactly the token's prefix, in a clean context.
What is not certified is explained by the checks: a stream token is sound when at least one time that it was fed all of
them held, and nothing that the stream's end rests on is a time when they did not. Rejected drafts, padding and finished
rows are nobody's support and are not judged. What could have been sound in a step that was not observed is unobserved,
never violated and never clean.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from specaudit.checks.causes.acceptance import unverified
from specaudit.checks.diagnose import trace_causes
from specaudit.checks.kv import check_origin, flaw_finding, misplaced_finding
from specaudit.checks.misplaced import Misplaced, misplaced_token
from specaudit.checks.pos import check_pos
from specaudit.checks.rect import check_rect
from specaudit.checks.resting import harmful_attempts
from specaudit.checks.scene import Scenery
from specaudit.checks.warrant import check_choice
from specaudit.checks.warrants import Standing, TokenWarrant, is_read_for_each, output_warrants
from specaudit.core.vocabulary import Check, Sync
from specaudit.trace.growth import grow, sees_its_path
from specaudit.trace.trie import NONE, FlawKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from specaudit.checks.causes.acceptance import DraftChoice
    from specaudit.checks.streams import Attempt, Stream
    from specaudit.core.records import CauseFinding, Finding
    from specaudit.trace.records import Step, Trace
    from specaudit.trace.trie import Flaw, PrefixTrie

CHECKS = (check_rect, check_pos)

PROCESSED = "its logits are processed before a token is chosen"
"""Why a case is clean at best, where the generation config applies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the checks say of one case."""

    sync: Sync
    """Outcome."""

    reason: str | None
    """What was not observed, for `unobserved`; what keeps a `clean` case from being certified; else None."""

    findings: tuple[Finding, ...]
    """First failure of each check, earliest first."""

    causes: tuple[CauseFinding, ...] = ()
    """Why the case is violated, as far as the trace shows it, the origin first; of an unobserved one, what would explain a
    wrong output."""


def judge(
    trace: Trace,
    streams: Sequence[Stream],
    *,
    logits_are_processed: bool = False,
    draft_choice: DraftChoice = lambda prefix: None,
    trie: PrefixTrie | None = None,
) -> list[Judgement]:
    """Return the sync of every case of a traced call, whose streams `trace_streams` returned.

    `trie` is the one grown from the trace, for a caller who looks into it afterwards. Where processors change logits
    before a token is chosen, what the target chose is not known: contexts are judged, and a case is at best clean.
    """
    trie = grow(trace) if trie is None else trie
    judging = _Judging(trace, streams, trie, draft_choice, logits_are_processed=logits_are_processed)
    return [judging.judge(stream) for stream in streams]


class _Judging:
    """Judges the cases of one call."""

    def __init__(
        self,
        trace: Trace,
        streams: Sequence[Stream],
        trie: PrefixTrie,
        draft_choice: DraftChoice,
        *,
        logits_are_processed: bool,
    ) -> None:
        self.trace = trace
        self.streams = streams
        self.trie = trie
        self.draft_choice = draft_choice
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
        findings, blind = self._placed_findings(stream, with_contents=unwarranted is None)
        if unwarranted is not None:
            findings, blind = self._with_origin(findings, blind, unwarranted, stream)
        if not findings and blind is None and unwarranted is not None:
            return self._never_fed(stream, unwarranted)
        if findings:
            shown = self._first_of_each_check(findings)
            causes = trace_causes(self.trace, self.trie, stream, shown, unwarranted, self.draft_choice)
            return Judgement(sync=Sync.VIOLATED, reason=None, findings=shown, causes=causes)
        return self._sound() if unwarranted is None else _unobserved(blind or "nothing shows why")

    def _stands(self, warrant: TokenWarrant) -> bool:
        if self.logits_are_processed:
            return bool(warrant.readings)
        return warrant.standing is Standing.WARRANTED

    def _sound(self) -> Judgement:
        caveats = (*([PROCESSED] if self.logits_are_processed else []), *self.trace.caveats)
        sync = Sync.CLEAN if caveats else Sync.CERTIFIED
        return Judgement(sync=sync, reason="; ".join(caveats) or None, findings=())

    def _placed_findings(self, stream: Stream, *, with_contents: bool) -> tuple[list[Finding], str | None]:
        """Return what the checks find in the places where the stream's tokens were fed, and what was not observed there.

        Contents are looked at only where a sound twin vouches for every token: else the trie says what is wrong with them.
        """
        failures = {
            attempt: self._failures_of(attempt, with_contents=with_contents)
            for attempts in (*stream.attempts[:-1], *stream.shared[:-1])  # nothing rests on the last token
            for attempt in attempts
        }
        unsound: list[Finding] = []
        blind: str | None = None
        for attempts, shared in zip(stream.attempts[:-1], stream.shared[:-1], strict=True):
            if not attempts or any(failures[attempt] == () for attempt in (*attempts, *shared)):
                continue
            unseen = next((attempt for attempt in attempts if failures[attempt] is None), None)
            if unseen is None:
                unsound += failures[attempts[0]] or ()  # the first time it was fed: later ones follow from it
            else:
                blind = blind or f"step {unseen.step}: {self.trace.steps[unseen.step].obstacles[0]}"
        for attempt in harmful_attempts(self.trace, stream, failures):
            unsound += failures[attempt] or ()
        for attempts in stream.attempts[:-1] if with_contents else ():
            if not any(failures[attempt] == () for attempt in attempts):  # what its own rows fed was never sound
                flawed = [attempt for attempt in attempts if self._flaw(attempt) is not None]
                unsound += [finding for attempt in flawed for finding in failures[attempt] or ()]
        return unsound, blind

    def _failures_of(self, attempt: Attempt, *, with_contents: bool) -> tuple[Finding, ...] | None:
        """Return the findings of one attempt, () when sound, None when the step was not observed."""
        found = _failures(self.trace.steps[attempt.step], attempt)
        if found == () and with_contents:
            flaw = self._flaw(attempt)
            return () if flaw is None else (flaw_finding(flaw, attempt.stream_index),)
        return found

    def _flaw(self, attempt: Attempt) -> Flaw | None:
        """Return what is known to be wrong with what an attempt saw, or None."""
        node = self.trie.node_of_write[attempt.write]
        flaw = None if node == NONE else self.trie.flaws[node]
        return None if flaw is None or flaw.kind is FlawKind.UNOBSERVED else flaw

    def _first_of_each_check(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return the first finding of each check, earliest first.

        Where positions are wrong, a token may be taken for another of its kind, and the number of slots that it saw for
        wrong: slots that are the path of what was fed before it are right, whatever token it was read as.
        """
        first: dict[Check, Finding] = {}
        for finding in sorted(findings, key=_moment):
            if finding.check in first:
                continue
            if finding.check is not Check.RECT or Check.POS not in first or not self._sees_its_path(finding):
                first[finding.check] = finding
        return tuple(first.values())

    def _sees_its_path(self, finding: Finding) -> bool:
        step = self.trace.steps[finding.step]
        ids = step.input_ids
        if ids is None:
            return False
        write = self._first_writes[finding.step] + finding.row * ids.shape[1] + finding.query
        return sees_its_path(self.trie, step, finding.row, finding.query, write)

    @cached_property
    def _first_writes(self) -> dict[int, int]:
        """Return the index of the first write of each step."""
        first: dict[int, int] = {}
        for place, made in enumerate(self.trace.writes):
            first.setdefault(made.step, place)
        return first

    def _with_origin(
        self, findings: list[Finding], blind: str | None, warrant: TokenWarrant, stream: Stream
    ) -> tuple[list[Finding], str | None]:
        """Return the findings with the one that explains a token without a warrant, or what was not observed of it."""
        origin = check_origin(self.trie, stream, warrant)
        if warrant.standing is Standing.UNREAD and blind is None:
            shown = findings or ([] if origin is None else [origin])
            misplaced = misplaced_token(self.trace, self.trie, stream, self.streams)
            if misplaced is not None and all(_is_later(finding, misplaced) for finding in shown):
                return [misplaced_finding(misplaced)], None
        if warrant.standing is Standing.NOT_CHOSEN and all(
            finding.stream_index >= warrant.stream_index for finding in findings
        ):  # what was fed from that token on did not choose it, and may stand wrong because it is another
            findings = []
        if findings:
            return findings, None
        if warrant.standing is Standing.LOGITS_UNSEEN:
            return [], f"the logits that chose output token {warrant.stream_index - stream.prompt_length} were not seen"
        blind = blind or next(
            (f"step {step.index}: {step.obstacles[0]}" for step in self.trace.steps if step.obstacles), None
        )
        if blind is not None:
            return [], blind
        if warrant.standing is Standing.NOT_CHOSEN:
            return [check_choice(warrant, stream)], None
        return ([] if origin is None else [origin]), None

    def _never_fed(self, stream: Stream, warrant: TokenWarrant) -> Judgement:
        """Return the judgement of a case with a token whose prefix no forward is known to have read.

        A forward may have run where no tap was, so it is no violation; should the output differ, it is the cause.
        """
        steps = self.trace.steps
        if not steps:
            return _unobserved("no forward of the target was seen")
        if not any(step.is_complete for step in steps):
            return _unobserved("no forward went through all attention layers of the target")
        index = next((index for index, attempts in enumerate(stream.attempts) if not attempts), len(stream.tokens) - 1)
        is_output = index >= stream.prompt_length
        place = f"output token {index - stream.prompt_length}" if is_output else f"prompt token {index}"
        causes = (unverified(warrant, Scenery(self.trace, self.trie, stream)),) if is_output else ()
        return Judgement(
            sync=Sync.UNOBSERVED,
            reason=f"no observed forward of the target was fed {place}",
            findings=(),
            causes=causes,
        )


def _is_later(finding: Finding, misplaced: Misplaced) -> bool:
    return finding.step > misplaced.step or (finding.step == misplaced.step and finding.row != misplaced.row)


def _unobserved(reason: str) -> Judgement:
    return Judgement(sync=Sync.UNOBSERVED, reason=reason, findings=())


def _failures(step: Step, attempt: Attempt) -> tuple[Finding, ...] | None:
    """Return the findings of one attempt, () when sound, None when the step was not observed."""
    if step.obstacles:
        return None
    return tuple(finding for check in CHECKS if (finding := check(step, attempt)) is not None)


def _moment(finding: Finding) -> tuple[int, int, int]:
    return finding.step, finding.row, finding.query
