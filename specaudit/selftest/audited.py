"""One decoder call in a trial, traced and judged as a run would."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specaudit.checks.causes.case import case_causes
from specaudit.checks.judgement import Judgement, judge
from specaudit.checks.streams import trace_streams
from specaudit.faults.trials import DRAFT_TOKENS, NEW_TOKENS
from specaudit.trace.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from specaudit.core.records import CauseFinding
    from specaudit.decoders.drafting import StressDraft
    from specaudit.faults.trials import Trial
    from specaudit.selftest.subjects import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """What a call returned and what the checks say of it."""

    outputs: list[list[int]]
    """Outputs in the order of the prompts."""

    judgements: list[Judgement]
    """Judgement of each case."""

    causes: list[tuple[CauseFinding, ...]]
    """Causes of each case, the origin first."""

    by_layers: dict[str, list[Judgement]]
    """Judgements of recorders that look at some layers alone, by their names in `restricted`; `all` is the full one."""


def audit(
    decode: Callable[..., list[list[int]]],
    model: Any,
    draft: Any,
    trial: Trial,
    *,
    restricted: Mapping[str, Collection[int]] | None = None,
) -> Audited:
    """Run a decoder on a trial; `restricted` gives layers for further recorders that look at those alone, by a name."""
    restricted = restricted or {}
    recorders = [Recorder(model), *(Recorder(model, layers=layers) for layers in restricted.values())]
    with ExitStack() as stack:
        for recorder in recorders:
            stack.enter_context(recorder)
        outputs = decode(
            model,
            draft,
            None,
            [list(prompt) for prompt in trial.prompts],
            max_new_tokens=NEW_TOKENS,
            draft_tokens=DRAFT_TOKENS,
            eos_token_ids=set(trial.eos_token_ids),
            pad_token_id=trial.pad_token_id,
        )
    full, *partial = (_judged(recorder, outputs, draft, trial) for recorder in recorders)
    names = [str(number) for number in range(len(trial.prompts))]
    references = dict(zip(names, trial.expected, strict=True))
    causes = [
        case_causes(
            name,
            output,
            references,
            stream=stream,
            judgement=judgement,
            eos_token_ids=trial.eos_token_ids,
            pad_token_id=trial.pad_token_id,
            max_new_tokens=NEW_TOKENS,
        )
        for name, output, stream, judgement in zip(names, outputs, *full, strict=True)
    ]
    return Audited(
        outputs=outputs,
        judgements=full[1],
        causes=causes,
        by_layers={**{name: one for name, (_, one) in zip(restricted, partial, strict=True)}, "all": full[1]},
    )


def ends_of(subject: Subject) -> dict[str, set[int]]:
    """Return the layers that an auditor in a hurry would look at: the first, or the first and the last."""
    return {"first": {0}, "ends": {0, subject.model.config.num_hidden_layers - 1}}


def _judged(recorder: Recorder, outputs: list[list[int]], draft: Any, trial: Trial) -> tuple[Any, list[Judgement]]:
    streams = trace_streams(recorder.trace, trial.prompts, outputs)
    return streams, judge(recorder.trace, streams, draft_choice=_choice_of(draft, trial))


def _choice_of(draft: StressDraft | Any, trial: Trial) -> Callable[[Sequence[int]], int | None]:
    """Return what a stress draft proposes after a prefix."""

    def choose(prefix: Sequence[int]) -> int | None:
        for prompt in trial.prompts:
            if tuple(prefix[: len(prompt)]) == prompt and hasattr(draft, "token"):
                return int(draft.token(prompt, len(prefix) - len(prompt)))
        return None

    return choose
