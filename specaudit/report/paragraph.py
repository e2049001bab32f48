"""Sentences of a report, wrapped at the width of the console."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

LEAST_WIDTH = 40
"""Width in cells that text is laid out for on an even narrower terminal."""


def print_paragraph(console: Console, text: Text, *, label: str = "", indent: int = 0) -> None:
    """Print `text` wrapped beside its `label`, every line `indent` cells in and without white space at its end."""
    width = max(LEAST_WIDTH, console.width) - indent - len(label)
    for number, line in enumerate(text.wrap(console, width) or [Text()]):
        line.rstrip()
        margin = Text(label, style="dim") if number == 0 else Text(" " * len(label))
        console.print(Text(" " * indent) + margin + line, soft_wrap=True)
