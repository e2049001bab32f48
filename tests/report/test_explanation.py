"""The story of a case: every cause has its advice, no text of others reaches the terminal as it is, no line is too long."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from specaudit.core.evidence import CaseEvidence, FedBlock, FedToken, Holding, Role, SlotRange
from specaudit.core.records import CauseFinding
from specaudit.core.vocabulary import Cause
from specaudit.report.cause_advice import ADVICE
from specaudit.report.explanation import MOST_RANGES, print_explanation
from tests.report.sample_runs import HOSTILE_TEXTS, arm, case, finding

BAD = (30, 31, 32, 33, 36, 38, 39, 40)
CAUSE = CauseFinding(cause=Cause.STALE_KV, step=3, row=1, query=0, stream_index=14, evidence="\x1b[31m slot 3 [bold]x")


def evidence(ranges: int = 3) -> CaseEvidence:
    """Return evidence with alternating ranges, of which one is seen and should not be."""
    slots = [
        SlotRange(
            first_column=8 * number,
            columns=8,
            holding=Holding.TOKEN if number % 2 else Holding.DRAFT,
            is_visible=number == 2 or bool(number % 2),
            is_due=bool(number % 2),
            stream_index=number,
            row=None,
            steps=(number,) * 8,
            token_ids=BAD,
        )
        for number in range(ranges)
    ]
    token = FedToken(
        query=0, token_id=30, role=Role.DECIDED, stream_index=14, position=99, top_ids=(36, 33), top_logits=(2.5, 1.25)
    )
    rejected = replace(token, query=1, role=Role.REJECTED, stream_index=None)
    return CaseEvidence(
        case_id="any",
        step=3,
        row=1,
        query=0,
        stream_index=14,
        layers=(0, 1, 3),
        window=5,
        expected_from=10,
        missing=(11, 12),
        slots=tuple(slots),
        blocks=(FedBlock(step=3, row=1, width=40, tokens_before=33, tokens=(token, rejected)),),
        output_id=37,
        token_texts=HOSTILE_TEXTS,
    )


def told(kept: CaseEvidence | None, *, causes: tuple[CauseFinding, ...] = (CAUSE,), encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding=encoding, write_through=True), width=80, no_color=True)
    failing = replace(
        case(arm("evil\x1b]0;t\x07", 4), 1, findings=(finding(step=3, row=1),), texts=HOSTILE_TEXTS), causes=causes
    )
    print_explanation(console, failing, [failing], kept, run_directory="runs/a b", token_texts={})
    return raw.getvalue().decode(encoding)


def test_every_cause_has_its_advice() -> None:
    assert set(ADVICE) == set(Cause)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_hostile_text_is_written_out(encoding: str) -> None:
    text = told(evidence(), encoding=encoding)
    assert not {"\x1b", "\x07", "\u202e", "\u200b", "\x9b"} & set(text)
    assert "[bold]x" in text
    *lines, command = text.splitlines()
    assert command.startswith("  specaudit run --from 'runs/a b' --case ")
    assert max(map(len, lines)) <= 80


def test_what_should_not_be_seen_is_marked_and_never_left_out() -> None:
    for ranges in (3, 60):
        lines = told(evidence(ranges)).splitlines()
        (wrong,) = [line for line in lines if "✗ seen" in line]
        assert wrong.split()[0] == "16-23"
        assert (
            sum(line.split()[:1] != [] and "-" in line.split()[0] and "step" in line for line in lines) <= MOST_RANGES
        )
        assert any("further ranges of slots" in line for line in lines) == (ranges > MOST_RANGES)
        assert len(lines) < 60


def test_expectations_are_told() -> None:
    text = " ".join(told(evidence()).split())
    assert "in layers 0-1, 3, in a window of 5" in text
    assert "It should see tokens 10-13 of the stream, and itself; missing: 11-12." in text
    assert "Its position was 99, where 14 is right." in text
    assert "fed 33 tokens and " in text
    assert "(2.50)" in text
    assert "the output goes on with 37 ':smile:'" in text


def test_without_evidence_or_cause() -> None:
    text = told(None, causes=())
    assert "No cause was found for it." in text
    assert "nothing was kept" in text
