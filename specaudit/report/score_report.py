"""The report of outputs that the oracle judged: what was read, the floor, the worst outputs, the verdict as the last line.

Pure presentation, as `specaudit.report.terminal`; everything that others wrote passes through `visible`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.text import Text

from specaudit.core.scores import Zone
from specaudit.core.shares import share, upper_bound_of_zero
from specaudit.core.vocabulary import RunVerdict
from specaudit.report.numbers import counted, percent_at_most, rate_interval
from specaudit.report.paragraph import print_paragraph
from specaudit.report.symbols import symbols_for
from specaudit.report.terminal import MOST_REASONS, REASON_CELLS, verdict_line
from specaudit.report.token_diff import token_name
from specaudit.report.visible_text import shorten, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console

    from specaudit.core.gate import Decision
    from specaudit.core.scores import Departure, NoiseFloor, ScoredOutput
    from specaudit.report.symbols import Symbols

INDENT = 2

SHARPNESS = 0.01
"""Chance of a false alarm from which on the floor is called blunt."""


def print_scores(
    console: Console,
    sides: Mapping[str, str],
    outputs: Sequence[ScoredOutput],
    decision: Decision,
    *,
    prompts: int,
    details: int,
    token_texts: Mapping[int, str],
) -> None:
    """Print what the oracle says, at most `details` outputs in full; `sides` says under each label what was read.

    `prompts` is the number of different prompts: outputs for the same one are no independent trials.
    """
    symbols = symbols_for(console)
    label_cells = max(map(len, sides)) + 2
    for label, value in (*sides.items(), *_totals(outputs)):
        print_paragraph(console, _plain(value, symbols), label=label.ljust(label_cells))
    _print_worst(console, outputs, symbols, details, token_texts)
    _print_reasons(console, outputs, symbols)
    console.print()
    for note in _notes(outputs, decision, prompts):
        print_paragraph(console, _plain(note, symbols))
    verdict = visible(verdict_line(decision), ascii_only=symbols.is_ascii)
    console.print(Text(verdict, style="bold"), soft_wrap=True)


def floor_text(floor: NoiseFloor, *, chance_of_false_alarm: float) -> str:
    """Return in words what a floor excuses and accuses, and what it rests on; the chance is that of an equal sample."""
    zones = f"ties up to {logits(floor.excused)}, never ties above {logits(floor.accused)} logits"
    if not floor.departures:
        return (
            f"{zones}: what the rounding of the target's type explains, as none of the reference's {floor.tokens} tokens"
            " departs from the argmax; an engine that rounds more than that needs a longer reference"
        )
    source = f"{floor.departures} of the reference's {floor.tokens} tokens are not the argmax"
    blunt = f"; with so few, equal samples of a sound engine go beyond it in {chance_of_false_alarm:.0%} of cases"
    return f"{zones}: {source}{blunt if chance_of_false_alarm >= SHARPNESS else ''}"


def logits(value: float) -> str:
    """Return a difference of logits with three figures: `0.0213`, `4.31`, `inf`."""
    return f"{value:.3g}"


def shown_token_ids(outputs: Sequence[ScoredOutput], details: int) -> frozenset[int]:
    """Return the token ids whose texts a report with `details` outputs may show, for whoever has a tokenizer."""
    first = [output.departures[0].score for output in worst_outputs(outputs)[:details] if output.departures]
    return frozenset(token for score in first for token in (score.token_id, score.argmax_id))


def worst_outputs(outputs: Iterable[ScoredOutput]) -> tuple[ScoredOutput, ...]:
    """Return the outputs that are not shown to be right: faulty ones first, the largest regret leading."""
    failing = [output for output in outputs if output.is_faulty or output.is_undecided]
    return tuple(sorted(failing, key=lambda output: (not output.is_faulty, -(output.largest_regret or 0.0))))


def _plain(text: str, symbols: Symbols) -> Text:
    return Text(visible(text, ascii_only=symbols.is_ascii))


def _totals(outputs: Sequence[ScoredOutput]) -> tuple[tuple[str, str], ...]:
    tokens = sum(output.tokens for output in outputs)
    if not tokens:
        return (("tokens", "none judged"),)
    ties = sum(output.ties for output in outputs)
    departures = sum(len(output.departures) for output in outputs)
    rate = rate_interval(share(departures, tokens))
    worst = max(outputs, key=lambda output: output.largest_regret or 0.0)
    place = f", prompt {worst.record_id}" if worst.largest_regret else ""
    exact = f", {ties} in an exact tie with it" if ties else ""
    return (
        ("tokens", f"{tokens} judged: {departures} not the argmax ({rate}){exact}"),
        ("regret", f"{logits(worst.largest_regret or 0.0)} logits at most{place}"),
    )


def _print_worst(
    console: Console,
    outputs: Sequence[ScoredOutput],
    symbols: Symbols,
    details: int,
    token_texts: Mapping[int, str],
) -> None:
    worst = worst_outputs(outputs)
    for output in worst[:details]:
        console.print()
        sign, style = (symbols.failed, "red") if output.is_faulty else (symbols.unknown, "yellow")
        name = _plain(f"prompt {output.record_id}: ", symbols)
        print_paragraph(console, Text(f"{sign} ", style=style) + name + Text(_outcome(output), style=style))
        for sentence in _sentences(output, symbols, token_texts):
            print_paragraph(console, Text(sentence), indent=INDENT)
    left = len(worst) - details
    if left > 0:
        console.print()
        print_paragraph(console, Text(f"{counted(left, 'more output' if details else 'output')} not shown"))


def _outcome(output: ScoredOutput) -> str:
    parts = []
    if output.departures:
        zones = {departure.zone for departure in output.departures}
        worst = next((zone for zone in (Zone.NEVER, Zone.TIE_IF_CERTIFIED, Zone.TIE) if zone in zones), None)
        parts.append("not the argmax, no floor to judge by" if worst is None else worst.value)
    if output.tail_start is not None:
        parts.append("text after end of sequence")
    return ", ".join(parts)


def _sentences(output: ScoredOutput, symbols: Symbols, token_texts: Mapping[int, str]) -> tuple[str, ...]:
    """Say, safe to print, where the output first leaves the argmax, how much more there is, and where it should end."""
    sentences = []
    if output.departures:
        first, *others = output.departures
        sentences.append(_departure(first, symbols, token_texts))
        if others:
            further = "1 further token is" if len(others) == 1 else f"{len(others)} further tokens are"
            largest = max(others, key=lambda departure: departure.score.regret)
            in_zone = "" if largest.zone is None else f", {largest.zone.value}"
            place = f"token {largest.score.index}, regret {logits(largest.score.regret)}{in_zone}"
            sentences.append(f"{further} not the argmax, the largest regret being that of {place}")
    if output.tail_start is not None:
        tail = "token follows" if output.tail_tokens == 1 else "tokens follow"
        sentences.append(f"ends at token {output.tail_start - 1} of the output, and {output.tail_tokens} more {tail}")
    return tuple(sentences)


def _departure(departure: Departure, symbols: Symbols, token_texts: Mapping[int, str]) -> str:
    score = departure.score
    emitted, argmax = (token_name(one, symbols, token_texts) for one in (score.token_id, score.argmax_id))
    in_zone = "" if departure.zone is None else f", {departure.zone.value}"
    return (
        f"token {score.index} of the output: {emitted} has rank {score.rank} and regret {logits(score.regret)}{in_zone};"
        f" the argmax is {argmax}"
    )


def _print_reasons(console: Console, outputs: Sequence[ScoredOutput], symbols: Symbols) -> None:
    reasons = Counter(output.error for output in outputs if output.error is not None).most_common()
    if not reasons:
        return
    console.print()
    console.print(Text(f"{symbols.unknown} unmeasured", style="yellow"))
    for reason, count in reasons[:MOST_REASONS]:
        shown = shorten(visible(reason, ascii_only=symbols.is_ascii), REASON_CELLS, ellipsis=symbols.ellipsis)
        print_paragraph(console, Text(f"{counted(count, 'output')}: {shown}"), indent=INDENT)
    rest = reasons[MOST_REASONS:]
    if rest:
        more = f"{counted(sum(count for _, count in rest), 'output')} for {counted(len(rest), 'further reason')}"
        print_paragraph(console, Text(f"{more}, not shown"), indent=INDENT)


def _notes(outputs: Sequence[ScoredOutput], decision: Decision, prompts: int) -> tuple[str, ...]:
    """Say what cannot be known of lengths, and what a clean result rules out."""
    longest = max((output.tokens for output in outputs), default=0)
    short = sum(0 < output.tokens < longest and not output.is_ended for output in outputs)
    notes = []
    if short:
        what = "output stops" if short == 1 else "outputs stop"
        notes.append(
            f"{short} {what} without end of sequence and before the longest ({longest} tokens): tokens do not say whether"
            " something was cut off"
        )
    if decision.verdict is RunVerdict.EQUAL_OUTPUTS:
        bound = percent_at_most(upper_bound_of_zero(prompts))
        notes.append(f"0 of {prompts} at fault: below {bound} % by prompt; 95 % confidence")
    return tuple(notes)
