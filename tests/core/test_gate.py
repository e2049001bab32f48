"""The gate, case by case: which exit code, and what outranks what."""

from __future__ import annotations

import pytest

from specaudit.core.gate import decide
from specaudit.core.vocabulary import RunVerdict, Sync
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
