"""From scores to findings: what of an output is judged, and what a set of control outputs is worth."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from specaudit.core.scores import Departure, ScoredOutput
from specaudit.oracle.floor import measure_floor, zone

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from specaudit.core.scores import NoiseFloor, PromptedOutput, Replay, TokenScore

MOST_CONTROL_DEPARTURES = 0.25
"""Share of tokens that are not the argmax, above which controls are no greedy outputs of the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlResult:
    """What control outputs give: a floor, or the reason why they give none."""

    floor: NoiseFloor | None
    """The noise floor, or None."""

    problem: str | None
    """Why there is no floor, or None."""


def judge_output(
    record_id: str,
    output: PromptedOutput,
    replay: Replay,
    *,
    eos_token_ids: Collection[int],
    floor: NoiseFloor | None,
) -> ScoredOutput:
    """Return what the oracle says of an output, up to its first end of sequence; what follows that is a finding.

    An end of sequence that the target would have emitted and the output lacks is a departure like any other. Whether an
    output without one was cut short cannot be known: the limit is not in its tokens. An empty output shows nothing.
    """
    scores = _until_eos(replay.scores, eos_token_ids)
    error = replay.error or (None if output.output_ids else "the output is empty: there is no token to judge")
    tail = len(replay.scores) - len(scores)
    return ScoredOutput(
        record_id=record_id,
        tokens=len(scores),
        ties=sum(score.rank == 0 and score.token_id != score.argmax_id for score in scores),
        departures=tuple(
            Departure(score=score, zone=None if floor is None else zone(score.regret, floor))
            for score in scores
            if score.rank > 0
        ),
        tail_start=len(scores) if tail else None,
        tail_tokens=tail,
        is_ended=bool(scores) and scores[-1].token_id in eos_token_ids,
        error=error,
    )


def judge_controls(
    replays: Sequence[Replay], *, eos_token_ids: Collection[int], resolution: float = 0.0
) -> ControlResult:
    """Return the floor of outputs that were decoded without speculation; `resolution` as for `measure_floor`.

    Controls that show a fault of their own give no floor: it would excuse the same fault in others. So do outputs that
    are not this target's: sampled, of another model, or of another prompt than recorded.
    """
    judged = [_until_eos(replay.scores, eos_token_ids) for replay in replays]
    scores = [score for one in judged for score in one]
    departures = sum(score.rank > 0 for score in scores)
    tails = sum(len(one) < len(replay.scores) for one, replay in zip(judged, replays, strict=True))
    problem = None
    if not scores:
        problem = "no output of the reference has a token that could be judged"
    elif tails:
        problem = f"{tails} of its {len(replays)} outputs go on after end of sequence, which plain decoding does not"
    elif departures > MOST_CONTROL_DEPARTURES * len(scores):
        problem = f"{departures} of its {len(scores)} tokens are not the target's argmax: another model, or sampled"
    elif not all(isfinite(score.regret) for score in scores):
        problem = "it holds a token that the target can never emit"
    if problem is not None:
        return ControlResult(floor=None, problem=problem)
    regrets = [[score.regret for score in one] for one in judged]
    return ControlResult(floor=measure_floor(regrets, resolution=resolution), problem=None)


def _until_eos(scores: Sequence[TokenScore], eos_token_ids: Collection[int]) -> tuple[TokenScore, ...]:
    end = next((score.index + 1 for score in scores if score.token_id in eos_token_ids), len(scores))
    return tuple(scores[:end])
