"""The gate for outputs that the oracle judged: one pure function turns them into a verdict and an exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.gate import EXIT_FINDING, EXIT_NO_EVIDENCE, EXIT_PASSED, Decision
from specaudit.core.scores import Zone
from specaudit.core.ties import LEAST_CHANCE, chance_of_as_many
from specaudit.core.vocabulary import RunVerdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.core.scores import NoiseFloor, ScoredOutput


def decide_scores(outputs: Sequence[ScoredOutput], *, floor: NoiseFloor | None = None) -> Decision:
    """Judge scored outputs, held against `floor`; the first match wins.

    1. A token that is never a tie, text after end of sequence, or far more outputs with a tie than the floor's own outputs
       have: `failed`, 1.
    2. An output that was not judged, or a token that can be neither excused nor accused: `no-evidence`, 3.
    3. Otherwise `equal-outputs`, 0: every token is the argmax, or a tie.
    """
    count = len(outputs)
    never = sum(any(one.zone is Zone.NEVER for one in output.departures) for output in outputs)
    tails = sum(output.tail_start is not None for output in outputs)
    undecided = sum(output.is_undecided for output in outputs)
    unmeasured = sum(output.error is not None for output in outputs)
    findings = [f"{never} of {count} outputs have a token that is never a tie"] if never else []
    findings += [f"{tails} of {count} go on after end of sequence"] if tails else []
    gaps = [f"{undecided} of {count} have a token that is neither excused nor accused"] if undecided else []
    gaps += [f"{unmeasured} of {count} unmeasured"] if unmeasured else []
    departing = sum(bool(output.departures) for output in outputs)
    judged = count - unmeasured
    is_crowded = (
        floor is not None
        and departing > 0
        and chance_of_as_many(departing, judged, floor.departing, floor.outputs) < LEAST_CHANCE
    )
    if floor is not None and is_crowded and not findings:
        of_floor = f"{floor.departing} of {floor.outputs} outputs of the reference"
        findings = [f"{departing} of {judged} outputs leave the argmax, {of_floor}: that is no rounding"]
    if findings:
        return Decision(verdict=RunVerdict.FAILED, exit_code=EXIT_FINDING, reasons=(*findings, *gaps))
    if gaps or not outputs:
        reasons = tuple(gaps) or ("there is no output",)
        return Decision(verdict=RunVerdict.NO_EVIDENCE, exit_code=EXIT_NO_EVIDENCE, reasons=reasons)
    tokens = sum(output.tokens for output in outputs)
    ties = sum(output.ties + len(output.departures) for output in outputs)
    what = f"{tokens - ties} of {tokens} tokens are the target's argmax"
    reasons = (what, *([f"{ties} tie with it"] if ties else []), "inner state not observed")
    return Decision(verdict=RunVerdict.EQUAL_OUTPUTS, exit_code=EXIT_PASSED, reasons=reasons)
