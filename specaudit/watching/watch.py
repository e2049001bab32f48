"""`specaudit.watch`: the taps on a model while a script decodes with it, and the report of what they saw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from transformers import PreTrainedModel

from specaudit.checks.judgement import Judgement, judge
from specaudit.checks.streams import Stream, trace_streams
from specaudit.checks.warrants import Standing, TokenWarrant, output_warrants
from specaudit.core.errors import UsageError
from specaudit.core.records import CauseFinding
from specaudit.core.vocabulary import Cause, Sync
from specaudit.trace.growth import grow
from specaudit.trace.recorder import Recorder
from specaudit.watching.report import WatchedCase, WatchReport
from specaudit.watching.token_ids import all_begin_with_prompts, read_rows, without_prompts

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from types import TracebackType

    from specaudit.trace.records import Trace


class Watch:
    """Watches every forward of one model while its context is open.

    Any number of decoder calls may be made in it; `report` is given the prompts and outputs of all of them. The model
    computes the same bits as without, and is left as it was found, also where the block raises. Watches of different
    models may be nested. Only the thread that entered is watched; forwards in others make everything unobserved.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        """Look at the model; raise UsageError for what is no causal language model of transformers."""
        if not _is_causal(model):
            raise UsageError(
                f"a {type(model).__name__} cannot be watched",
                where="watch",
                way_out="give a causal language model of transformers, as AutoModelForCausalLM loads it: "
                "the one inside a pipeline, an adapter or a compiled module.",
            )
        self._model = model
        self._recorder: Recorder | None = None
        self._is_open = False

    def __enter__(self) -> Self:
        """Put the taps on; raise UsageError where that was done before."""
        if self._recorder is not None:
            raise UsageError("this watch was used before", where="watch", way_out="call watch(model) for a new one.")
        self._recorder = Recorder(self._model)
        self._recorder.__enter__()
        self._note_premises(self._recorder)
        self._is_open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Take the taps off."""
        self._is_open = False
        if self._recorder is not None:
            self._recorder.__exit__(kind, error, traceback)
            self._note_premises(self._recorder)

    def report(
        self,
        prompts: Sequence[Sequence[int]],
        outputs: Sequence[Sequence[int]],
        *,
        outputs_include_prompt: bool | None = None,
        eos_token_ids: Collection[int] | int | None = None,
    ) -> WatchReport:
        """Return what was seen of all that was decoded so far.

        Args:
            prompts: token ids of every prompt that was decoded, one row each, as it was fed, without padding; a prompt
                that was decoded twice stands there twice.
            outputs: token ids that were generated for each, in the same order, without padding; an end of sequence is
                included, and nothing after it.
            outputs_include_prompt: whether each output begins with its prompt, as `generate` returns them. None for no;
                outputs that all begin so are refused then, since they are likely meant.
            eos_token_ids: ids that end an output; one that goes on after them is violated.

        Raises UsageError for rows that cannot be meant: other numbers of prompts and outputs, padding, text.
        """
        if self._recorder is None:
            raise UsageError("nothing was watched yet", where="watch", way_out="decode inside `with watch(model)`.")
        trace = self._recorder.trace
        if self._is_open:
            self._note_premises(self._recorder)
        prompt_rows, output_rows = _paired(read_rows(prompts, "prompts"), read_rows(outputs, "outputs"))
        output_rows = _generated(prompt_rows, output_rows, outputs_include_prompt)
        ends = {eos_token_ids} if isinstance(eos_token_ids, int) else set(eos_token_ids or ())
        trie = grow(trace)
        streams = trace_streams(trace, prompt_rows, output_rows)
        judgements = judge(trace, streams, trie=trie)
        cases: list[WatchedCase] = []
        notes: list[str] = []
        for index, (stream, judgement) in enumerate(zip(streams, judgements, strict=True)):
            warrants = output_warrants(trie, stream)
            _check_padding(index, stream, warrants, ends)
            if not (ends or trace.obstacles):
                notes += _padding_note(index, warrants, stream)
            cases.append(_case(index, trace, stream, judgement, warrants, ends))
        if not any(case.sync is Sync.VIOLATED for case in cases):  # what follows from a violation needs no other reason
            notes += _notes(trace, streams)
        return WatchReport(
            architecture=type(self._model).__name__, forwards=len(trace.steps), cases=tuple(cases), notes=tuple(notes)
        )

    def _note_premises(self, recorder: Recorder) -> None:
        """Note as obstacles what would make the certificate untrue."""
        obstacles = recorder.trace.obstacles
        obstacles += [premise for premise in recorder.broken_premises() if premise not in obstacles]


def _is_causal(model: Any) -> bool:
    if not isinstance(model, PreTrainedModel) or getattr(model.config, "is_encoder_decoder", False):
        return False
    return model.get_output_embeddings() is not None  # type: ignore[no-untyped-call]


def _paired(
    prompts: list[tuple[int, ...]], outputs: list[tuple[int, ...]]
) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    if len(prompts) != len(outputs):
        raise UsageError(
            f"{len(outputs)} outputs for {len(prompts)} prompts",
            where="report",
            way_out="give every prompt that was decoded, and one output for each, in the same order.",
        )
    if not prompts:
        raise UsageError("no prompts", where="report", way_out="give every prompt that was decoded.")
    return prompts, outputs


def _generated(
    prompts: Sequence[tuple[int, ...]], outputs: list[tuple[int, ...]], include_prompt: bool | None
) -> list[tuple[int, ...]]:
    """Return outputs without their prompts; raise UsageError where it is not clear whether they include them."""
    if include_prompt:
        return without_prompts(outputs, prompts)
    if include_prompt is None and all_begin_with_prompts(outputs, prompts):
        raise UsageError(
            "every output begins with its prompt",
            where="outputs",
            way_out="pass outputs_include_prompt=True to have the prompts cut off, or False where the model repeats them.",
        )
    return outputs


def _end(stream: Stream, ends: set[int]) -> int | None:
    """Return the place in the output of the first end of sequence that something follows, or None."""
    output = stream.tokens[stream.prompt_length :]
    return next((place for place, token in enumerate(output[:-1]) if token in ends), None)


def _check_padding(index: int, stream: Stream, warrants: Sequence[TokenWarrant], ends: set[int]) -> None:
    """Raise UsageError for what looks like padding after an end of sequence: one id that the model did not choose."""
    end = _end(stream, ends)
    if end is None or warrants[end + 1].standing is Standing.WARRANTED:
        return
    rest = stream.tokens[stream.prompt_length + end + 1 :]
    if len(set(rest)) == 1:
        raise UsageError(
            f"output {index} has {len(rest)} times id {rest[0]} after its end of sequence, which looks like padding",
            where="outputs",
            way_out="cut every output after its first end of sequence: output[: output.index(eos_token_id) + 1].",
        )


def _padding_note(index: int, warrants: Sequence[TokenWarrant], stream: Stream) -> list[str]:
    """Return the suspicion that an output ends in padding, where no end of sequence is known to tell."""
    first = next((warrant for warrant in warrants if warrant.standing is not Standing.WARRANTED), None)
    rest = [] if first is None else stream.tokens[first.stream_index :]
    if len(rest) < 2 or len(set(rest)) > 1:
        return []
    return [
        f"output {index} ends in {len(rest)} times id {rest[0]}, which the model did not choose; "
        "padding is to be removed before the report"
    ]


def _notes(trace: Trace, streams: Sequence[Stream]) -> list[str]:
    """Return what to know of forwards that the given prompts do not account for."""
    known = {
        attempt.step for stream in streams for of_token in (*stream.attempts, *stream.shared) for attempt in of_token
    }
    unknown = [step.index for step in trace.steps if step.is_complete and step.views and step.index not in known]
    if not unknown or trace.obstacles:
        return []
    return [
        f"{len(unknown)} of {len(trace.steps)} forwards, the first step {unknown[0]}, fed no token of these prompts and "
        "outputs; give all that was decoded, since what is left out is not judged"
    ]


def _case(
    index: int,
    trace: Trace,
    stream: Stream,
    judgement: Judgement,
    warrants: Sequence[TokenWarrant],
    ends: set[int],
) -> WatchedCase:
    overrun = _overrun(stream, ends)
    warranted = sum(warrant.standing is Standing.WARRANTED for warrant in warrants)
    return WatchedCase(
        index=index,
        prompt_ids=tuple(stream.tokens[: stream.prompt_length]),
        output_ids=tuple(stream.tokens[stream.prompt_length :]),
        sync=Sync.VIOLATED if overrun else judgement.sync,
        sync_reason=None if overrun else judgement.reason,
        findings=judgement.findings,
        causes=(*judgement.causes, *overrun),
        warranted_tokens=None if trace.obstacles else warranted,
    )


def _overrun(stream: Stream, ends: set[int]) -> tuple[CauseFinding, ...]:
    """Return the cause for an output that goes on after an end of sequence."""
    end = _end(stream, ends)
    if end is None:
        return ()
    index = stream.prompt_length + end
    more = len(stream.tokens) - index - 1
    evidence = f"output token {end} is the end of sequence {stream.tokens[index]}, and {more} more follow"
    return (
        CauseFinding(
            cause=Cause.MISSED_EOS, step=None, row=None, query=None, stream_index=index + 1, evidence=evidence
        ),
    )
