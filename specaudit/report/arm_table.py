"""The table of a report: one row of two lines an arm, in 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from specaudit.core.vocabulary import Check, Sync
from specaudit.report.numbers import NOTHING, percent, rate_per_second, share_lines
from specaudit.report.symbols import STYLES
from specaudit.report.visible_text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.core.summary import ArmSummary
    from specaudit.report.symbols import Symbols

TABLE_WIDTH = 80
"""Least width of the table; a narrower terminal wraps it rather than lose a digit."""

PAPER_CHECKS = (Check.RECT, Check.POS)
"""The invariants of Zhang et al., always shown."""


def arm_table(summaries: Sequence[ArmSummary], symbols: Symbols) -> Table:
    """Return the table of all arms: counts on the first line of a row, intervals and the verdict on the second.

    Draft length and seed have a column only when there are several. Checks other than the paper's two share one, only when
    violated: a column each would not fit.
    """
    more = further_checks(summaries)
    shows_draft_tokens = len({summary.draft_tokens for summary in summaries} - {None}) > 1
    shows_seed = len({summary.seed for summary in summaries} - {None}) > 1
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("decoder", overflow="fold", min_width=14)
    for heading in ("batch", *(["K"] if shows_draft_tokens else []), *(["seed"] if shows_seed else [])):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("cases", "identical", "partial", "acceptance", "tok/s", *PAPER_CHECKS, *(["more"] if more else [])):
        table.add_column(heading, justify="right", no_wrap=True)
    for summary in failing_decoders_first(summaries):
        draft_tokens = [_or_nothing(summary.draft_tokens)] if shows_draft_tokens else []
        seed = [_or_nothing(summary.seed)] if shows_seed else []
        name = _name_and_verdict(summary, symbols)
        table.add_row(name, _or_nothing(summary.batch_size), *draft_tokens, *seed, *_numbers(summary, more))
    return table


def further_checks(summaries: Sequence[ArmSummary]) -> tuple[Check, ...]:
    """Return the checks that share the last column, in order."""
    violated = {check for summary in summaries for check, count in summary.violated_checks.items() if count}
    return tuple(check for check in Check if check in violated and check not in PAPER_CHECKS)


def failing_decoders_first(summaries: Sequence[ArmSummary]) -> tuple[ArmSummary, ...]:
    """Return the arms grouped by decoder, decoders with a failing arm first; otherwise the order is kept."""
    failing = {summary.decoder for summary in summaries if summary.is_failing}
    order = {decoder: place for place, decoder in enumerate(dict.fromkeys(summary.decoder for summary in summaries))}
    return tuple(sorted(summaries, key=lambda summary: (summary.decoder not in failing, order[summary.decoder])))


def _name_and_verdict(summary: ArmSummary, symbols: Symbols) -> Text:
    name = Text(visible(summary.decoder, ascii_only=symbols.is_ascii), style="bold")
    verdict = Text(f"{symbols.of(summary.verdict)} {summary.verdict.value}", style=STYLES[summary.verdict])
    return Text("\n").join([name, verdict])


def _or_nothing(number: int | None) -> str:
    return NOTHING if number is None else str(number)


def _numbers(summary: ArmSummary, more: Sequence[Check]) -> tuple[str, ...]:
    partial = summary.mean_partial_match
    return (
        str(summary.cases),
        share_lines(summary.exact_match),
        NOTHING if partial is None else f"{percent(partial)} %",
        share_lines(summary.acceptance),
        rate_per_second(summary.tokens_per_second),
        *(_violated_cases(summary, [check]) for check in PAPER_CHECKS),
        *([_violated_cases(summary, more)] if more else []),
    )


def _violated_cases(summary: ArmSummary, checks: Sequence[Check]) -> str:
    """Return how many findings of some checks there are, and of how many cases when some were not observed: `2`, `2/13`.

    A case counts once for each check that it violated.
    """
    observed = summary.cases - summary.syncs[Sync.UNOBSERVED]
    if not observed:
        return NOTHING
    count = str(sum(summary.violated_checks[check] for check in checks))
    return count if observed == summary.cases else f"{count}/{observed}"
