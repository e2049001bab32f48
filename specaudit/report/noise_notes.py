"""What rounding was held against: a line for each noise floor that a run measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from specaudit.report.numbers import counted
from specaudit.report.paragraph import print_paragraph
from specaudit.report.visible_text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from specaudit.core.scores import Control
    from specaudit.report.symbols import Symbols


def print_noise_notes(console: Console, controls: Sequence[Control], symbols: Symbols) -> None:
    """Print the floor of each shape, the size of its sample, and what it excuses; nothing where none was measured."""
    if controls:
        console.print()
    for control in controls:
        shape = f"noise floor at batch {control.batch_size}, K {control.draft_tokens}: {_floor(control)}"
        print_paragraph(console, Text(visible(shape, ascii_only=symbols.is_ascii)))


def _floor(control: Control) -> str:
    floor = control.floor
    if floor is None:
        return f"none, {control.problem}"
    return (
        f"{floor.excused:.2g} logits, from {counted(floor.outputs, 'control output')} with"
        f" {counted(floor.tokens, 'token')}, {floor.departures} of them not the target's choice; faults below that"
        f" are excused, and below {floor.accused:.2g} logits in certified outputs"
    )
