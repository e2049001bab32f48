"""Exact match by category for the arms that fail: a table of one line a category, in 80 columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from specaudit.core.vocabulary import Verdict
from specaudit.report.arm_table import failing_decoders_first
from specaudit.report.numbers import NOTHING, counted, interval
from specaudit.report.paragraph import print_paragraph, print_table
from specaudit.report.visible_text import shorten, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from specaudit.core.shares import Share
    from specaudit.core.summary import ArmSummary
    from specaudit.report.symbols import Symbols

WIDTH = 80
"""Terminal cells that the table fits into, whatever the terminal."""

MOST_CATEGORIES = 14
"""Categories shown, those with the fewest identical outputs first: SpecBench has 13."""

NAME_CELLS = 18
"""Most terminal cells of a category or a decoder."""

FEWEST_CASES = 5
"""Cases that the largest category must have: a share of one or two prompts says nothing and fills the screen."""

HEADING = "identical by category"

_GAP = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """One arm, as shown."""

    heading: str
    cells: tuple[str, ...]

    @property
    def width(self) -> int:
        return max(map(cell_len, (self.heading, *self.cells)))


def print_category_table(console: Console, summaries: Sequence[ArmSummary], symbols: Symbols) -> None:
    """Print the table of the arms with a diverged case; nothing where there is none or categories are small."""
    arms = [
        summary
        for summary in failing_decoders_first(summaries)
        if summary.verdicts[Verdict.DIVERGED] and any(category.cases >= FEWEST_CASES for category in summary.categories)
    ]
    if not arms:
        return
    every_category = _worst_first(arms)
    categories = every_category[:MOST_CATEGORIES]
    names = [_shown(category or "(none)", symbols) for category in categories]
    columns = _fitting(
        [_column(arm, arms, categories, symbols) for arm in arms], WIDTH - max(map(cell_len, (HEADING, *names)))
    )
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False)
    table.add_column(HEADING, no_wrap=True)
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for place, name in enumerate(names):
        table.add_row(name, *(column.cells[place] for column in columns))
    console.print()
    print_table(console, table, least_width=WIDTH)
    left = [counted(len(arms) - len(columns), "arm")] if len(arms) > len(columns) else []
    hidden = len(every_category) - len(categories)
    left += [counted(hidden, "category", "categories")] if hidden else []
    if left:
        print_paragraph(console, Text(f"{' and '.join(left)} not shown; the JSON report has all", style="dim"))


def _worst_first(arms: Sequence[ArmSummary]) -> list[str | None]:
    """Return the categories by their mean share of identical outputs over the arms, the lowest first."""
    rates: dict[str | None, list[float]] = {}
    for one in (one for arm in arms for one in arm.categories):
        rates.setdefault(one.category, []).append(1.0 if one.exact_match is None else one.exact_match.rate)
    return sorted(rates, key=lambda category: sum(rates[category]) / len(rates[category]))


def _column(arm: ArmSummary, arms: Sequence[ArmSummary], categories: Sequence[str | None], symbols: Symbols) -> _Column:
    """Return the shares of one arm under its decoder, batch size and, where there are several, draft length and seed."""
    shares = {one.category: one.exact_match for one in arm.categories}
    heading = _shown(arm.decoder, symbols) + ("" if arm.batch_size is None else f" b{arm.batch_size}")
    heading += f" k{arm.draft_tokens}" if len({one.draft_tokens for one in arms}) > 1 else ""
    heading += f" s{arm.seed}" if len({one.seed for one in arms}) > 1 else ""
    return _Column(heading=heading, cells=tuple(_cell(shares.get(one)) for one in categories))


def _fitting(columns: Sequence[_Column], room: int) -> list[_Column]:
    """Return as many columns as `room` cells hold, one at least."""
    fitting = list(columns[:1])
    room -= columns[0].width + _GAP
    for column in columns[1:]:
        room -= column.width + _GAP
        if room < 0:
            break
        fitting.append(column)
    return fitting


def _cell(share: Share | None) -> str:
    return NOTHING if share is None else f"{share.count}/{share.total} {interval(share):>11}"


def _shown(name: str, symbols: Symbols) -> str:
    return shorten(visible(name, ascii_only=symbols.is_ascii), NAME_CELLS, ellipsis=symbols.ellipsis)
