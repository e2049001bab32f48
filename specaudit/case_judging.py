"""From a decoder call to the results of its cases: verdict, sync, causes, symptoms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specaudit.checks.causes.case import case_causes
from specaudit.checks.evidence import case_evidence
from specaudit.checks.judgement import Judgement, judge
from specaudit.checks.streams import JointRounds, joint_rounds, trace_streams
from specaudit.core.records import CaseResult, CauseFinding, Coverage, case_id
from specaudit.core.scores import Zone
from specaudit.core.vocabulary import Cause, Compared, Sync, Verdict
from specaudit.noise import draft_choice_of
from specaudit.output_comparison import compare_output
from specaudit.reference import ids_digest
from specaudit.text.description import described
from specaudit.trace.growth import grow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.checks.streams import Stream
    from specaudit.core.evidence import CaseEvidence
    from specaudit.core.records import Arm
    from specaudit.decoder_call import DecoderCall, PromptCase
    from specaudit.models.loaded import LoadedModel
    from specaudit.noise import Excuse, Noise
    from specaudit.output_comparison import OutputComparison
    from specaudit.text.output_pair import Vocabulary

RETURNED_TEXT = Judgement(
    sync=Sync.UNOBSERVED, reason="the decoder returned text; return token ids to have it observed", findings=()
)
"""Without the ids of an output, nobody knows which of the tokens fed belong to it."""


class CaseJudge:
    """Judges the cases of decoder calls."""

    def __init__(
        self,
        target: LoadedModel,
        noise: Noise,
        *,
        max_new_tokens: int,
        eos_token_ids: frozenset[int],
        vocabulary: Vocabulary,
        logits_are_processed: bool,
    ) -> None:
        """`noise` says what rounding may excuse; nothing, where logits are processed before a token is chosen."""
        self.target = target
        self.noise = noise
        self.max_new_tokens = max_new_tokens
        self.eos_token_ids = eos_token_ids
        self.vocabulary = vocabulary
        self.logits_are_processed = logits_are_processed
        self._evidence: list[CaseEvidence] = []

    def results(
        self, arm: Arm, unit: int, number: int, cases: Sequence[PromptCase], call: DecoderCall, *, draft: Any
    ) -> list[CaseResult]:
        """Return one result for each of the `cases` that call `number` of a unit decoded, in their order."""
        outputs: Sequence[tuple[int, ...] | str | None] = call.outputs or [None] * len(cases)
        output_ids = [output if isinstance(output, tuple) else () for output in outputs]
        streams = trace_streams(call.trace, [case.prompt_ids for case in cases], output_ids)
        trie = grow(call.trace)
        judgements = judge(
            call.trace,
            streams,
            trie=trie,
            logits_are_processed=self.logits_are_processed,
            draft_choice=draft_choice_of(draft),
        )
        rounds = joint_rounds(streams)
        results = [
            self._result(arm, unit, number, cases, place, call, outputs[place], stream, judgement, rounds)
            for place, (stream, judgement) in enumerate(zip(streams, judgements, strict=True))
        ]
        self._evidence += [
            evidence
            for result, stream in zip(results, streams, strict=True)
            if result.sync is Sync.VIOLATED
            and (evidence := case_evidence(result.case_id, call.trace, trie, stream, result.findings, result.causes))
        ]
        return results

    def take_evidence(self) -> tuple[CaseEvidence, ...]:
        """Return what was kept of violated cases since the last call."""
        taken, self._evidence = tuple(self._evidence), []
        return taken

    def _result(
        self,
        arm: Arm,
        unit: int,
        number: int,
        cases: Sequence[PromptCase],
        place: int,
        call: DecoderCall,
        output: tuple[int, ...] | str | None,
        stream: Stream,
        judged: Judgement,
        rounds: JointRounds,
    ) -> CaseResult:
        case = cases[place]
        judgement = RETURNED_TEXT if isinstance(output, str) else judged
        comparison = compare_output(
            output, case.reference_ids, tokenizer=self.target.tokenizer, is_measurable=case.reference_error is None
        )
        causes = self._causes(cases, case, comparison, stream, judgement)
        excuse = self._excuse(arm, case, comparison, judgement, causes)
        verdict = Verdict.TIE if excuse is not None and _is_tie(excuse, judgement.sync) else comparison.verdict
        if not causes and verdict is not Verdict.IDENTICAL and verdict is not Verdict.UNMEASURED:
            causes = (_numeric_cause(verdict, comparison, excuse, len(case.prompt_ids)),)
        is_seen = judgement.sync is not Sync.UNOBSERVED
        result = CaseResult(
            case_id=case_id(arm, case.prompt_id),
            decoder=arm.decoder,
            batch_size=arm.batch_size,
            draft_tokens=arm.draft_tokens,
            seed=arm.seed,
            unit=unit,
            call=number,
            prompt_id=case.prompt_id,
            prompt_digest=ids_digest(case.prompt_ids),
            category=case.category,
            gold=case.gold,
            prompt_ids=case.prompt_ids,
            reference_ids=case.reference_ids,
            output_ids=comparison.output_ids,
            compared=comparison.compared,
            reference_text=comparison.reference_text,
            output_text=comparison.output_text,
            verdict=verdict,
            sync=judgement.sync,
            sync_reason=judgement.reason,
            findings=judgement.findings,
            causes=causes,
            first_divergence=comparison.first_divergence,
            partial_match=comparison.partial_match,
            largest_regret=None if excuse is None else excuse.regret,
            proposed_tokens=stream.proposed_tokens if is_seen else None,
            accepted_tokens=stream.accepted_tokens if is_seen else None,
            target_steps=stream.steps if is_seen else None,
            coverage=_coverage(stream, rounds) if is_seen else None,
            error=call.error or case.reference_error,
        )
        return described(result, vocabulary=self.vocabulary)

    def _causes(
        self,
        cases: Sequence[PromptCase],
        case: PromptCase,
        comparison: OutputComparison,
        stream: Stream,
        judgement: Judgement,
    ) -> tuple[CauseFinding, ...]:
        """Return why a case failed, the origin first: what the output shows by itself, then what the trace shows."""
        if comparison.verdict is not Verdict.DIVERGED or comparison.output_ids is None:
            return () if judgement.sync is Sync.UNOBSERVED else judgement.causes
        return case_causes(
            case.prompt_id,
            comparison.output_ids,
            {one.prompt_id: one.reference_ids for one in cases},
            stream=stream,
            judgement=judgement,
            eos_token_ids=self.eos_token_ids,
            pad_token_id=self.target.pad_token_id,
            max_new_tokens=self.max_new_tokens,
        )

    def _excuse(
        self,
        arm: Arm,
        case: PromptCase,
        comparison: OutputComparison,
        judgement: Judgement,
        causes: Sequence[CauseFinding],
    ) -> Excuse | None:
        """Return how far a diverged output that nothing is known to be wrong with strays from the target's choices."""
        is_open = comparison.verdict is Verdict.DIVERGED and comparison.output_ids and not causes
        if not is_open or judgement.sync is Sync.VIOLATED or self.logits_are_processed:
            return None
        return self.noise.excuse(
            case.prompt_ids,
            comparison.output_ids or (),
            batch_size=arm.batch_size,
            draft_tokens=arm.draft_tokens or 1,
        )


def _coverage(stream: Stream, rounds: JointRounds) -> Coverage:
    return Coverage(
        rejected=sum(not one.accepted for one in stream.rounds),
        partly=sum(0 < one.accepted < one.proposed for one in stream.rounds),
        accepted=sum(one.accepted == one.proposed for one in stream.rounds),
        together=sum(one.step in rounds.joint for one in stream.rounds),
        ragged=sum(one.step in rounds.ragged for one in stream.rounds),
        longest=max((one.proposed for one in stream.rounds), default=0),
    )


def _is_tie(excuse: Excuse, sync: Sync) -> bool:
    return excuse.zone is Zone.TIE or (excuse.zone is Zone.TIE_IF_CERTIFIED and sync is Sync.CERTIFIED)


def _numeric_cause(
    verdict: Verdict, comparison: OutputComparison, excuse: Excuse | None, prompt_length: int
) -> CauseFinding:
    """Return the cause of a difference which no row, position, mask, slot or stop rule explains."""
    index = None if comparison.first_divergence is None else prompt_length + comparison.first_divergence.position
    if excuse is None:
        what = (
            "texts differ" if comparison.compared is Compared.TEXT else "nothing that was seen explains the difference"
        )
    else:
        floor = excuse.control.floor
        known = f"no noise floor: {excuse.control.problem}" if floor is None else f"noise floor {floor.excused:.2g}"
        what = f"output token {excuse.place} lies {excuse.regret:.2g} logits below the target's choice; {known}"
    return CauseFinding(
        cause=Cause.ROUNDING_TIE if verdict is Verdict.TIE else Cause.UNEXPLAINED,
        step=None,
        row=None,
        query=None,
        stream_index=index,
        evidence=what,
    )
