"""The gate, case by case: which exit code, and what outranks what."""

from __future__ import annotations

import pytest

from specaudit.core.gate import decide
from specaudit.core.records import CauseFinding, Coverage
from specaudit.core.scores import Control, NoiseFloor
from specaudit.core.ties import chance_of_as_many
from specaudit.core.vocabulary import Cause, RunVerdict, Sync, Verdict
from tests.core.cases import made_case

CLEAN = made_case()
DIVERGED = made_case(output=(5, 7))
LATENT = made_case(sync=Sync.VIOLATED)
UNOBSERVED = made_case(sync=Sync.UNOBSERVED)
UNMEASURED = made_case(output=None, sync=Sync.UNOBSERVED)


@pytest.mark.parametrize(
    ("cases", "planned", "interrupted", "verdict", "exit_code"),
    [
        ([CLEAN, CLEAN], 2, False, RunVerdict.LOSSLESS, 0),
        ([CLEAN, UNOBSERVED], 2, False, RunVerdict.EQUAL_OUTPUTS, 0),
        ([CLEAN, DIVERGED], 2, False, RunVerdict.FAILED, 1),
        ([CLEAN, LATENT], 2, False, RunVerdict.FAILED, 1),
        ([DIVERGED, UNMEASURED], 2, False, RunVerdict.FAILED, 1),
        ([DIVERGED], 2, True, RunVerdict.FAILED, 1),
        ([LATENT], 9, False, RunVerdict.FAILED, 1),
        ([CLEAN, UNMEASURED], 2, False, RunVerdict.NO_EVIDENCE, 3),
        ([CLEAN], 2, False, RunVerdict.NO_EVIDENCE, 3),
        ([], 0, False, RunVerdict.NO_EVIDENCE, 3),
        ([CLEAN], 2, True, RunVerdict.INTERRUPTED, 130),
        ([CLEAN, UNMEASURED], 2, True, RunVerdict.INTERRUPTED, 130),
        ([], 2, True, RunVerdict.INTERRUPTED, 130),
    ],
)
def test_first_match_wins(cases: list, planned: int, interrupted: bool, verdict: RunVerdict, exit_code: int) -> None:
    decision = decide(cases, planned=planned, interrupted=interrupted)
    assert (decision.verdict, decision.exit_code) == (verdict, exit_code)
    assert decision.reasons
    assert all(decision.reasons)


def test_reasons_count_what_they_name() -> None:
    decision = decide([DIVERGED, LATENT, UNMEASURED, CLEAN], planned=6)
    assert decision.reasons == (
        "1 of 4 cases diverged",
        "1 violated a check",
        "1 unmeasured",
        "2 not run",
    )


FULL = Coverage(rejected=1, partly=1, accepted=1, together=1, ragged=1, longest=4)


@pytest.mark.parametrize(
    ("coverage", "missing"),
    [
        (Coverage(rejected=0, partly=2, accepted=3, together=2, ragged=2, longest=4), "rejected all"),
        (Coverage(rejected=2, partly=0, accepted=3, together=2, ragged=2, longest=4), "accepted some"),
        (Coverage(rejected=2, partly=1, accepted=0, together=2, ragged=2, longest=4), "accepted all"),
        (Coverage(rejected=2, partly=1, accepted=4, together=2, ragged=0, longest=4), "different numbers"),
    ],
)
def test_what_could_not_show_a_fault_is_no_pass(coverage: Coverage, missing: str) -> None:
    cases = [made_case(prompt_id=name, coverage=coverage) for name in "pq"]
    decision = decide(cases, planned=2)
    assert (decision.verdict, decision.exit_code) == (RunVerdict.INSUFFICIENT_COVERAGE, 3)
    assert missing in decision.reasons[0]
    assert "--draft" in decision.reasons[1]
    assert decide([DIVERGED, *cases], planned=3).exit_code == 1


@pytest.mark.parametrize(
    "coverage",
    [
        FULL,
        Coverage(rejected=0, partly=0, accepted=0, together=0, ragged=0, longest=0),  # it proposes nothing
        Coverage(rejected=1, partly=0, accepted=1, together=1, ragged=1, longest=1),  # one proposal is accepted or not
        None,  # not seen
    ],
)
def test_enough_coverage(coverage: Coverage | None) -> None:
    cases = [made_case(prompt_id=name, coverage=coverage) for name in "pq"]
    assert decide(cases, planned=2).exit_code == 0


def test_rows_decoded_alone_cannot_differ() -> None:
    alone = Coverage(rejected=1, partly=1, accepted=1, together=0, ragged=0, longest=4)
    cases = [made_case(prompt_id=name, coverage=alone, call=call) for call, name in enumerate("pq")]
    assert decide(cases, planned=2).exit_code == 0


def test_a_tie_passes_and_is_counted() -> None:
    decision = decide([CLEAN, made_case(output=(5, 7), verdict=Verdict.TIE)], planned=2)
    assert (decision.verdict, decision.exit_code) == (RunVerdict.LOSSLESS, 0)
    assert decision.reasons[:2] == ("1 of 2 cases identical", "1 tie by rounding")


def test_a_control_that_fails_accuses_nobody() -> None:
    unexplained = CauseFinding(
        cause=Cause.UNEXPLAINED, step=None, row=None, query=None, stream_index=3, evidence="0.3 logits"
    )
    open_case = made_case(output=(5, 7), causes=(unexplained,))
    broken = Control(batch_size=4, draft_tokens=4, floor=None, problem="control 'greedy': a slot is missing")
    decision = decide([open_case], planned=1, controls=[broken])
    assert (decision.verdict, decision.exit_code) == (RunVerdict.NO_EVIDENCE, 3)
    assert "a slot is missing" in decision.reasons[0]
    assert decide([open_case], planned=1).exit_code == 1
    assert decide([open_case, LATENT], planned=2, controls=[broken]).exit_code == 1


def test_many_ties_are_no_rounding() -> None:
    """A decoder that takes what is nearly as good differs within the floor each time, and far too often."""
    floor = NoiseFloor(maximum=0.0, resolution=0.1, outputs=32, tokens=600, departures=0, departing=0)
    control = Control(batch_size=4, draft_tokens=4, floor=floor, problem=None)
    tied = [made_case(prompt_id=f"p{place}", output=(5, 7), verdict=Verdict.TIE) for place in range(6)]
    rest = [made_case(prompt_id=f"q{place}") for place in range(2)]
    decision = decide([*tied, *rest], planned=8, controls=[control])
    assert (decision.verdict, decision.exit_code) == (RunVerdict.FAILED, 1)
    assert "6 of 8 cases differ, 0 of 32 control outputs" in decision.reasons[0]
    assert decide([tied[0], *rest], planned=3, controls=[control]).exit_code == 0


@pytest.mark.parametrize(("count", "total", "other", "of", "chance"), [(3, 4, 0, 4, 1 / 14), (1, 2, 1, 2, 5 / 6)])
def test_chance_of_as_many(count: int, total: int, other: int, of: int, chance: float) -> None:
    """By hand: C(3, 3) C(5, 1) / C(8, 4) = 5/70; 1 - C(2, 0) C(2, 2) / C(4, 2) = 5/6."""
    assert chance_of_as_many(count, total, other, of) == pytest.approx(chance)
