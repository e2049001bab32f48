"""The report of a self-test: one line a fault in 80 columns, then what was not right in full, then counts."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from specaudit.core.selftest_outcomes import CellOutcome, Fate, Outcome, RowOutcome, SubjectOutcome
from specaudit.core.shares import share
from specaudit.core.summary import ROUGE_BLIND_ABOVE
from specaudit.report.numbers import NOTHING, interval
from specaudit.report.paragraph import print_paragraph, print_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

WIDTH = 80
"""Least width of the table."""

LAYOUTS = ("contiguous", "holes", "static")
"""Layouts in the order of their columns."""

SHORT = {
    Outcome.RIGHT: "ok",
    Outcome.MISNAMED: "name",
    Outcome.MISSED: "MISS",
    Outcome.FALSE_ALARM: "alarm",
    Outcome.NOT_MADE: "none",
    Outcome.INAPPLICABLE: NOTHING,
}
"""Outcomes in a cell of the table."""

SCHEMA_VERSION = 1
"""Version of the document that `selftest_document` returns."""


def print_subject(console: Console, outcome: SubjectOutcome) -> None:
    """Print what was found on one model."""
    console.print(Text(f"{outcome.subject}\n", style="bold"))
    if outcome.cells:
        print_table(console, _table(outcome.cells), least_width=WIDTH)
        console.print()
    for cell in outcome.cells:
        if cell.outcome not in {Outcome.RIGHT, Outcome.INAPPLICABLE}:
            _print_wrong(console, cell)
    reasons = dict.fromkeys(
        (cell.layout, cell.remark) for cell in outcome.cells if cell.outcome is Outcome.INAPPLICABLE
    )
    for layout, reason in reasons:
        faults = ", ".join(
            cell.fault
            for cell in outcome.cells
            if cell.outcome is Outcome.INAPPLICABLE and (cell.layout, cell.remark) == (layout, reason)
        )
        print_paragraph(console, Text(f"not in {layout}: {faults}: {reason}", style="dim"))
    for variant in outcome.variants:
        if not variant.is_certified:
            word = "objected to" if variant.is_tried else "not tried"
            print_paragraph(console, Text(f"legal variant {variant.name} {word}: {variant.remark}"))
    for mutant in outcome.mutants:
        if mutant.fate is Fate.SURVIVED:
            print_paragraph(console, Text(f"mutant {mutant.number} survived: {mutant.description}"))
    console.print()


def print_totals(console: Console, outcomes: Sequence[SubjectOutcome]) -> None:
    """Print the counts over all models, with their intervals, and the verdict."""
    for label, text in _totals(outcomes):
        print_paragraph(console, Text(text), label=f"{label}  ".ljust(17))
    is_passed = all(outcome.is_passed for outcome in outcomes)
    verdict = "passed (exit 0)" if is_passed else "failed (exit 1)"
    console.print(Text(f"specaudit selftest: {verdict}", style="bold"))


def selftest_document(outcomes: Sequence[SubjectOutcome]) -> dict[str, Any]:
    """Return everything that was found as plain JSON."""
    return {
        "schema_version": SCHEMA_VERSION,
        "is_passed": all(outcome.is_passed for outcome in outcomes),
        "subjects": [{**asdict(outcome), "is_passed": outcome.is_passed} for outcome in outcomes],
    }


def _table(cells: Sequence[CellOutcome]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("fault", no_wrap=True)
    for heading in ("cont.", "holes", "static"):
        table.add_column(heading, no_wrap=True)
    table.add_column("found by", no_wrap=True)
    for heading in ("delay", "exact", "part", "ROUGE"):
        table.add_column(heading, justify="right", no_wrap=True)
    for fault in dict.fromkeys(cell.fault for cell in cells):
        mine = {cell.layout: cell for cell in cells if cell.fault == fault}
        rows = [row for cell in mine.values() for row in cell.rows]
        words = [SHORT[mine[layout].outcome] for layout in LAYOUTS]
        table.add_row(fault, *words, _found_by(rows), *_metrics(rows))
    return table


def _found_by(rows: Sequence[RowOutcome]) -> str:
    """Return the checks that found a fault; `output` where nothing but the output shows it."""
    checks = dict.fromkeys(check for row in rows for check in row.caught_by)
    seen = [check for check in checks if check != "output"]
    return " ".join(seen or checks) or NOTHING


def _metrics(rows: Sequence[RowOutcome]) -> tuple[str, str, str, str]:
    """Return the longest delay, exact matches, mean partial match and mean ROUGE-L of the rows that a fault touched."""
    if not rows:
        return NOTHING, NOTHING, NOTHING, NOTHING
    delays = [row.delay for row in rows if row.delay is not None]
    rouges = [row.rouge_l for row in rows if row.rouge_l is not None]
    return (
        str(max(delays)) if delays else NOTHING,
        f"{sum(row.is_exact for row in rows)}/{len(rows)}",
        f"{sum(row.partial_match for row in rows) / len(rows):.2f}",
        f"{sum(rouges) / len(rouges):.2f}" if rouges else NOTHING,
    )


def _print_wrong(console: Console, cell: CellOutcome) -> None:
    expected = " or ".join(cell.expected)
    if cell.outcome is Outcome.NOT_MADE or not cell.rows:
        print_paragraph(console, Text(f"{cell.fault}, {cell.layout}: {cell.outcome}: {cell.remark}"))
        return
    if cell.remark is not None:
        print_paragraph(console, Text(f"{cell.fault}, {cell.layout}: {cell.outcome}: {cell.remark}"))
    for row in cell.rows:
        if row.cause in cell.expected and row.caught_by:
            continue
        called = "was missed" if not row.caught_by else f"was called {row.cause or 'nothing'}"
        why = "" if row.evidence is None else f" ({row.evidence})"
        text = f"{cell.fault}, {cell.layout}: row {row.row} {called}{why}; right is {expected}"
        print_paragraph(console, Text(text))


def _totals(outcomes: Sequence[SubjectOutcome]) -> Iterable[tuple[str, str]]:
    cells = [cell for outcome in outcomes for cell in outcome.cells if cell.outcome is not Outcome.INAPPLICABLE]
    rows = [row for cell in cells for row in cell.rows]
    if cells:
        right = sum(cell.outcome is Outcome.RIGHT for cell in cells)
        caught = sum(cell.outcome in {Outcome.RIGHT, Outcome.MISNAMED, Outcome.FALSE_ALARM} for cell in cells)
        yield "faults caught", _share(caught, len(cells))
        yield "named right", _share(right, len(cells))
    if rows:
        exact = sum(row.is_exact for row in rows)
        blind = sum(row.rouge_l is not None and row.rouge_l > ROUGE_BLIND_ABOVE for row in rows)
        yield "exact match", f"would have passed {_share(exact, len(rows))} of the outputs that a fault touched"
        yield "ROUGE-L", f"scores {_share(blind, len(rows))} of them above {ROUGE_BLIND_ABOVE}"
    variants = [variant for outcome in outcomes for variant in outcome.variants if variant.is_tried]
    if variants:
        yield "legal variants", f"{_share(sum(one.is_certified for one in variants), len(variants))} certified"
    mutants = [mutant for outcome in outcomes for mutant in outcome.mutants]
    if mutants:
        harmful = [mutant for mutant in mutants if mutant.changes_logits]
        caught = sum(mutant.fate is Fate.CAUGHT for mutant in harmful)
        early = sum(mutant.fate is Fate.CAUGHT for mutant in mutants) - caught
        harmless = sum(mutant.fate is Fate.HARMLESS for mutant in mutants)
        if harmful:
            yield "mutants caught", f"{_share(caught, len(harmful))} of those that change logits"
        yield "other mutants", f"{harmless} harmless and certified, {early} caught before they did harm"


def _share(count: int, total: int) -> str:
    return f"{count}/{total} ({interval(share(count, total))})"
