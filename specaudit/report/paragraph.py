"""Sentences and tables of a report, laid out for the width of the console, without white space at line ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

LEAST_WIDTH = 40
"""Width in cells that text is laid out for on an even narrower terminal."""


def print_paragraph(console: Console, text: Text, *, label: str = "", indent: int = 0) -> None:
    """Print `text` wrapped beside its `label`, every line `indent` cells in."""
    width = max(LEAST_WIDTH, console.width) - indent - len(label)
    for number, line in enumerate(text.wrap(console, width) or [Text()]):
        line.rstrip()
        margin = Text(label, style="dim") if number == 0 else Text(" " * len(label))
        console.print(Text(" " * indent) + margin + line, soft_wrap=True)


def print_table(console: Console, table: Table, *, least_width: int) -> None:
    """Print `table`, `least_width` cells wide even on a narrower terminal, which then wraps it and loses nothing."""
    options = console.options.update_width(max(least_width, console.width))
    for line in console.render_lines(table, options, pad=False):
        text = Text.assemble(*((segment.text, segment.style or "") for segment in line))
        text.rstrip()
        console.print(text, soft_wrap=True)
