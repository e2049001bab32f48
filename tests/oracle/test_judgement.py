"""What of an output is judged, which controls give a floor, and the one function that decides the exit code."""

from __future__ import annotations

from typing import Any

import pytest

from specaudit.core.score_gate import decide_scores
from specaudit.core.scores import Departure, PromptedOutput, Replay, ScoredOutput, TokenScore, Zone
from specaudit.oracle.floor import measure_floor
from specaudit.oracle.judgement import judge_controls, judge_output

EOS = frozenset({2, 3})
FLOOR = measure_floor([[0.1]])


def scored(*tokens: tuple[int, float]) -> Replay:
    """Return a replay of tokens with these regrets; token 7 ties with the argmax, which is 9."""
    scores = [
        TokenScore(
            index=index,
            token_id=token,
            argmax_id=9 if regret or token == 7 else token,
            rank=int(regret > 0),
            regret=regret,
            largest_logit=5.0,
        )
        for index, (token, regret) in enumerate(tokens)
    ]
    return Replay(scores=tuple(scores))


def judged(found: Replay, **options: Any) -> ScoredOutput:
    ids = tuple(score.token_id for score in found.scores) or (5,)
    output = PromptedOutput(prompt_ids=(1,), output_ids=ids)
    return judge_output("q", output, found, **{"eos_token_ids": EOS, "floor": FLOOR, **options})


def test_tokens_are_judged_up_to_the_first_end_of_sequence() -> None:
    found = judged(scored((5, 0.0), (7, 0.0), (6, 0.3), (2, 0.05), (2, 9.0), (8, 9.0)))
    assert (found.tokens, found.ties, found.tail_start, found.tail_tokens, found.is_ended) == (4, 1, 4, 2, True)
    zones = [(one.score.index, one.zone) for one in found.departures]
    assert zones == [(2, Zone.TIE_IF_CERTIFIED), (3, Zone.TIE)]
    assert found.largest_regret == 0.3
    assert found.is_faulty
    whole = judged(scored((2, 0.0), (8, 9.0)), eos_token_ids=())
    assert (whole.tokens, whole.tail_start, whole.is_ended) == (2, None, False)


def test_an_end_that_is_last_is_no_tail() -> None:
    assert judged(scored((5, 0.0), (3, 0.0))).tail_start is None


def test_what_was_not_scored_is_an_error_and_no_zero() -> None:
    for output, replay in (((), Replay(scores=())), ((5,), Replay(scores=(), error="boom"))):
        found = judge_output(
            "q", PromptedOutput(prompt_ids=(1,), output_ids=output), replay, eos_token_ids=EOS, floor=FLOOR
        )
        assert found.error is not None
        assert found.largest_regret is None


@pytest.mark.parametrize(
    ("replays", "words"),
    [
        ([], "no output of the reference"),
        ([Replay(scores=(), error="boom")], "no output of the reference"),
        ([scored((5, 0.0)), scored((2, 0.0), (5, 0.0))], "1 of its 2 outputs go on after end of sequence"),
        ([scored((5, 0.0), (5, 0.1), (6, 0.2))], "2 of its 3 tokens are not the target's argmax"),
        ([scored(*[(5, 0.0)] * 9, (5, float("inf")))], "never emit"),
    ],
)
def test_controls_at_fault_give_no_floor(replays: list[Replay], words: str) -> None:
    result = judge_controls(replays, eos_token_ids=EOS)
    assert result.floor is None
    assert words in (result.problem or "")


def test_controls_give_the_largest_regret() -> None:
    result = judge_controls(
        [scored(*[(5, 0.0)] * 7, (5, 0.2)), Replay(scores=(), error="boom")], eos_token_ids=EOS, resolution=0.01
    )
    assert result.problem is None
    assert result.floor is not None
    assert (result.floor.maximum, result.floor.tokens, result.floor.excused) == (0.2, 8, 0.2)


SOUND = judged(scored((5, 0.0), (7, 0.0), (5, 0.1)))
MIDDLE = judged(scored((5, 0.3)))
UNKNOWN = judged(scored((5, 0.3)), floor=None)
NEVER = judged(scored((5, 0.5), (5, 0.3)))
TAIL = judged(scored((2, 0.0), (5, 0.0)), floor=None)
MISSING = judged(Replay(scores=(), error="boom"))


@pytest.mark.parametrize(
    ("outputs", "verdict", "code", "reasons"),
    [
        ([SOUND], "equal-outputs", 0, "1 of 3 tokens are the target's argmax, 2 tie with it, inner state not observed"),
        ([SOUND, MIDDLE], "no-evidence", 3, "1 of 2 have a token that is neither excused nor accused"),
        ([SOUND, UNKNOWN], "no-evidence", 3, "1 of 2 have a token that is neither excused nor accused"),
        ([SOUND, MISSING], "no-evidence", 3, "1 of 2 unmeasured"),
        ([], "no-evidence", 3, "there is no output"),
        ([SOUND, NEVER], "failed", 1, "1 of 2 outputs have a token that is never a tie"),
        ([TAIL, UNKNOWN], "failed", 1, "1 of 2 go on after end of sequence, 1 of 2 have a token that is neither"),
        ([NEVER, MISSING], "failed", 1, "1 of 2 outputs have a token that is never a tie, 1 of 2 unmeasured"),
    ],
)
def test_the_gate(outputs: list[ScoredOutput], verdict: str, code: int, reasons: str) -> None:
    decision = decide_scores(outputs)
    assert (decision.verdict.value, decision.exit_code) == (verdict, code)
    assert ", ".join(decision.reasons).startswith(reasons)


def test_a_fault_outranks_what_is_undecided_in_one_output() -> None:
    assert NEVER.is_faulty
    assert not NEVER.is_undecided
    assert MIDDLE.is_undecided
    assert isinstance(MIDDLE.departures[0], Departure)
