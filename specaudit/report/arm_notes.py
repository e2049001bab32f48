"""How the outputs of a failing arm look: how soon they part, what a reader sees of it, what ROUGE makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from specaudit.core.summary import ROUGE_BLIND_ABOVE
from specaudit.core.vocabulary import Verdict
from specaudit.report.arm_table import failing_decoders_first
from specaudit.report.numbers import counted, interval, rate_interval
from specaudit.report.paragraph import print_paragraph
from specaudit.report.visible_text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from specaudit.core.summary import ArmSummary
    from specaudit.report.symbols import Symbols


MOST_CAUSES = 4
"""Causes named for an arm, the most frequent first."""


def print_arm_notes(console: Console, summaries: Sequence[ArmSummary], symbols: Symbols) -> None:
    """Print a paragraph for each arm with a diverged case, in the order of the table; nothing where there is none."""
    diverged = [summary for summary in failing_decoders_first(summaries) if summary.verdicts[Verdict.DIVERGED]]
    if diverged:
        console.print()
    for summary in diverged:
        text = f"{arm_name(summary)}{_variant(summary, summaries)}: {'; '.join(_notes(summary))}"
        print_paragraph(console, Text(visible(text, ascii_only=symbols.is_ascii)))


def arm_name(summary: ArmSummary, *, joint: str = ",") -> str:
    """Return an arm's decoder and, where it is known, its batch size: `bsp, batch 4`."""
    return summary.decoder + ("" if summary.batch_size is None else f"{joint} batch {summary.batch_size}")


def _variant(summary: ArmSummary, summaries: Sequence[ArmSummary]) -> str:
    """Return draft length and seed where the arms have several: `, K 8, seed 1`."""
    draft_tokens = f", K {summary.draft_tokens}" if len({one.draft_tokens for one in summaries} - {None}) > 1 else ""
    seed = f", seed {summary.seed}" if len({one.seed for one in summaries} - {None}) > 1 else ""
    return draft_tokens + seed


def _notes(summary: ArmSummary) -> list[str]:
    notes = []
    if summary.hazard is not None:
        risk = f"{summary.hazard.count} of {counted(summary.hazard.total, 'token')}"
        notes.append(f"a first wrong token in {risk} ({rate_interval(summary.hazard)} a token)")
    if summary.exact_match_by_call is not None:
        notes.append(f"identical {interval(summary.exact_match_by_call)} by batch")
    permuted = sum(displacement.is_permuted for displacement in summary.displacements.values())
    misplaced = len(summary.displacements) - permuted
    notes += [f"{counted(permuted, 'output')} permuted"] if permuted else []
    notes += [f"{counted(misplaced, 'output')} of another prompt"] if misplaced else []
    causes = sorted(((count, cause) for cause, count in summary.causes.items() if count), reverse=True)
    notes += (
        [f"causes: {', '.join(f'{cause.value} {count}' for count, cause in causes[:MOST_CAUSES])}"] if causes else []
    )
    seen = [f"{symptom.value} {count}" for symptom, count in summary.symptoms.items() if count]
    notes += [f"symptoms: {', '.join(seen)}"] if seen else []
    return [*notes, _blind_spot(summary)]


def _blind_spot(summary: ArmSummary) -> str:
    if summary.rouge_blind is None:
        return "ROUGE-L can score none of the failures"
    count, total = summary.rouge_blind.count, summary.rouge_blind.total
    not_scored = f", {summary.rouge_not_scored} not scored" if summary.rouge_not_scored else ""
    return f"ROUGE-L scores {count} of {counted(total, 'failure')} above {ROUGE_BLIND_ABOVE}{not_scored}"
