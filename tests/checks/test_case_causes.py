"""Which cause comes first, where an output and a trace each show one."""

from __future__ import annotations

from dataclasses import replace

from specaudit.checks.causes.case import case_causes
from specaudit.checks.judgement import Judgement
from specaudit.checks.streams import Stream
from specaudit.core.records import CauseFinding
from specaudit.core.vocabulary import Cause, Sync

CONTEXT = CauseFinding(
    cause=Cause.PAD_ATTENDED, step=0, row=1, query=2, stream_index=0, layer=0, slot=0, evidence="3 slots of padding"
)
PROMPT, EOS = (5, 6), 2


def causes(output: tuple[int, ...], references: dict[str, tuple[int, ...]], *found: CauseFinding) -> list[Cause]:
    sync = Sync.VIOLATED if found else Sync.UNOBSERVED
    judgement = Judgement(sync=sync, reason=None, findings=(), causes=found)
    shown = case_causes(
        "p",
        output,
        references,
        stream=Stream(prompt_length=len(PROMPT), tokens=[*PROMPT, *output]),
        judgement=judgement,
        eos_token_ids={EOS},
        pad_token_id=1,
        max_new_tokens=8,
    )
    return [one.cause for one in shown]


def test_the_output_of_another_prompt() -> None:
    assert causes((9, 9, 9), {"p": (7, 8), "q": (9, 9, 9)}) == [Cause.PERMUTED]


def test_an_output_that_equals_another_by_accident() -> None:
    """Broken rows loop, and loops are alike: what attention saw wrong comes first."""
    assert causes((9, 9, 9), {"p": (7, 8), "q": (9, 9, 9)}, CONTEXT) == [Cause.PAD_ATTENDED, Cause.PERMUTED]
    chosen = replace(CONTEXT, cause=Cause.BONUS_WRONG)
    assert causes((9, 9, 9), {"p": (7, 8), "q": (9, 9, 9)}, chosen)[0] is Cause.PERMUTED


def test_an_end_that_is_left_out_is_no_fault_of_the_prompt() -> None:
    assert causes((7, 8), {"p": (7, 8, EOS)}) == [Cause.EARLY_STOP]
