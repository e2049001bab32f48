"""The failing cases of a report in full: what differed, where it first went wrong, and who decoded together."""

from __future__ import annotations

import shlex
from itertools import zip_longest
from math import floor
from typing import TYPE_CHECKING

from rich.text import Text

from specaudit.core.comparison import shared_length
from specaudit.core.summary import ROUGE_BLIND_ABOVE, arm_key, is_failing
from specaudit.core.vocabulary import Compared, Symptom, Sync, Verdict
from specaudit.report.arm_table import failing_decoders_first
from specaudit.report.numbers import counted
from specaudit.report.paragraph import LEAST_WIDTH, print_paragraph
from specaudit.report.token_diff import ids_near, token_diff, token_name
from specaudit.report.visible_text import shorten, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from specaudit.core.comparison import Divergence
    from specaudit.core.displacement import Displacement
    from specaudit.core.records import CaseResult, CauseFinding, Finding, SymptomFinding
    from specaudit.core.summary import ArmSummary
    from specaudit.report.symbols import Symbols

INDENT = 2

TEXT_CELLS = 40
"""Most terminal cells of a text where it parts from the reference's."""

NAMED_NEIGHBOURS = 6
"""Most prompts named of those that were decoded together with a case."""


def worst_failures(summaries: Sequence[ArmSummary], cases: Sequence[CaseResult], limit: int) -> tuple[CaseResult, ...]:
    """Return at most `limit` failing cases, spread over the arms in the order of the table.

    Within an arm the cases that show both cause and effect (violated and diverged) come first, then the other violated
    ones, the earliest finding leading, since later ones may be its consequences; then those that only diverged, the
    earliest divergence leading. Each arm gives one case before any gives a second.
    """
    ranked_arms = [
        sorted((case for case in cases if is_failing(case) and _is_in(case, summary)), key=_severity)
        for summary in failing_decoders_first(summaries)
    ]
    rounds = zip_longest(*ranked_arms)
    return tuple(case for arm_round in rounds for case in arm_round if case is not None)[: max(0, limit)]


def shown_token_ids(summaries: Sequence[ArmSummary], cases: Sequence[CaseResult], limit: int) -> frozenset[int]:
    """Return the token ids whose texts a report with `limit` details may show, for whoever has a tokenizer."""
    nothing: frozenset[int] = frozenset()
    return nothing.union(*(ids_near(case) for case in worst_failures(summaries, cases, limit)))


def print_failure(
    console: Console,
    case: CaseResult,
    cases: Sequence[CaseResult],
    symbols: Symbols,
    *,
    token_texts: Mapping[int, str] | None,
    displacement: Displacement | None = None,
    run_directory: str | None = None,
    shows_causes: bool = True,
) -> None:
    """Print one failing case; `cases` are those of the run, which say what it was decoded with.

    `displacement` is that of its output, or None where it is nobody else's. With a `run_directory` the command that tells
    more comes last, on one line that can be copied.
    """
    width = max(LEAST_WIDTH, console.width) - INDENT
    print_paragraph(console, _heading(case, symbols))
    if case.batch_size is not None:
        print_paragraph(console, _plain(_where(case, cases), symbols), indent=INDENT)
    print_paragraph(console, Text(_difference(case, symbols, token_texts)), indent=INDENT)
    for line in token_diff(case, symbols, token_texts=token_texts, width=width):
        console.print(Text(" " * INDENT) + line, soft_wrap=True)
    for sentence in (*_displacement(displacement), *(_symptom(found) for found in case.symptoms), *_rouge(case)):
        print_paragraph(console, _plain(sentence, symbols), indent=INDENT)
    for cause in case.causes if shows_causes else ():
        print_paragraph(console, _plain(_cause(cause, case), symbols), indent=INDENT)
    for finding in case.findings:
        print_paragraph(console, _plain(_explanation(finding, case), symbols), indent=INDENT)
    if run_directory is not None:
        command = f"specaudit explain {shlex.quote(run_directory)} {shlex.quote(case.case_id)}"
        console.print(Text(" " * INDENT) + _plain(command, symbols), soft_wrap=True)


def _plain(text: str, symbols: Symbols) -> Text:
    return Text(visible(text, ascii_only=symbols.is_ascii))


def _is_in(case: CaseResult, arm: ArmSummary) -> bool:
    return arm_key(case) == arm_key(arm)


def _severity(case: CaseResult) -> tuple[int, ...]:
    """Return a key that sorts the case most worth reading first."""
    if case.sync is Sync.VIOLATED and case.findings:
        moment = min((finding.step, finding.row, finding.query) for finding in case.findings)
        return (0, case.verdict is not Verdict.DIVERGED, case.unit, case.call, *moment)
    position = 0 if case.first_divergence is None else case.first_divergence.position
    return (1, position, case.unit, case.call)


def _heading(case: CaseResult, symbols: Symbols) -> Text:
    """Name the case and its outcome: `bsp, batch 4, prompt chat-01: diverged, POS and RECT violated`."""
    outcome = case.verdict.value
    if case.sync is Sync.VIOLATED:
        checks = " and ".join(dict.fromkeys(finding.check.value for finding in case.findings))
        outcome = f"{outcome}, {checks or 'a check'} {case.sync.value}"
    batch = "" if case.batch_size is None else f", batch {case.batch_size}"
    arm = _plain(f"{case.decoder}{batch}, prompt {case.prompt_id}: ", symbols)
    return Text(f"{symbols.failed} ", style="red") + arm + Text(outcome, style="red")


def _where(case: CaseResult, cases: Sequence[CaseResult]) -> str:
    call = (arm_key(case), case.unit, case.call)
    neighbours = [
        other.prompt_id
        for other in cases
        if (arm_key(other), other.unit, other.call) == call and other.case_id != case.case_id
    ]
    place = f"case {case.case_id}, unit {case.unit}, call {case.call}"
    if not neighbours:
        return f"{place}, decoded alone"
    named = ", ".join(neighbours[:NAMED_NEIGHBOURS])
    more = len(neighbours) - NAMED_NEIGHBOURS
    return f"{place}, decoded with {named}" + (f" and {more} more" if more > 0 else "")


def _difference(case: CaseResult, symbols: Symbols, token_texts: Mapping[int, str] | None) -> str:
    """Say in one sentence, safe to print, how the output compares with the reference."""
    if case.first_divergence is None:
        if case.compared is Compared.TEXT and case.verdict is Verdict.DIVERGED:
            return _text_difference(case.reference_text or "", case.output_text or "", symbols)
        if case.verdict is Verdict.IDENTICAL:
            return "the output equals the reference all the same: exact match cannot see this"
        return "there is no output to compare"
    return _divergence(case.first_divergence, case, symbols, token_texts)


def _text_difference(expected: str, actual: str, symbols: Symbols) -> str:
    place = shared_length(expected, actual)
    shown = [
        shorten(visible(text[place:], ascii_only=symbols.is_ascii), TEXT_CELLS, ellipsis=symbols.ellipsis)
        for text in (expected, actual)
    ]
    return (
        f"compared as text: parts from the reference at character {place} of the output:"
        f" expected '{shown[0]}', got '{shown[1]}'"
    )


def _divergence(
    divergence: Divergence, case: CaseResult, symbols: Symbols, token_texts: Mapping[int, str] | None
) -> str:
    place = f"at token {divergence.position} of the output"
    if divergence.actual is None:
        return f"stops too early {place}: the reference has {counted(len(case.reference_ids), 'token')}"
    if divergence.expected is None:
        tokens = counted(len(case.output_ids or ()), "token")
        return f"goes on too long {place}: the reference has stopped, the output has {tokens}"
    expected = token_name(divergence.expected, symbols, token_texts)
    actual = token_name(divergence.actual, symbols, token_texts)
    return f"parts from the reference {place}: expected {expected}, got {actual}"


def _displacement(displacement: Displacement | None) -> tuple[str, ...]:
    if displacement is None:
        return ()
    how = "permuted" if displacement.is_permuted else "another prompt's"
    return (f"{how}: the output is the reference's for prompt {displacement.owner}",)


def _symptom(found: SymptomFinding) -> str:
    """Name a symptom: `repetition from token 6 on: one token 9 times in a row: ' not' (the reference has 4)`."""
    is_whole = found.onset is None or found.symptom in {Symptom.EMPTY, Symptom.TRUNCATION}
    place = "" if is_whole else f" from token {found.onset} on"
    excused = f" (the reference has {found.reference_extent})" if 0 < found.reference_extent < found.extent else ""
    return f"{found.symptom.value}{place}: {found.what}{excused}"


def _rouge(case: CaseResult) -> tuple[str, ...]:
    """Return the score that lets a failure pass, rounded down; nothing where ROUGE-L sees it, or may not be applied."""
    if case.verdict is not Verdict.DIVERGED or case.rouge_l is None or case.rouge_l <= ROUGE_BLIND_ABOVE:
        return ()
    return (f"ROUGE-L scores it {floor(100 * case.rouge_l) / 100:.2f}",)


def _cause(found: CauseFinding, case: CaseResult) -> str:
    """Name a cause and its origin: `cause position-gap at step 3, row 1, query 0: token 8 was given position 10`."""
    layer = "" if found.layer is None else f", layer {found.layer}"
    slot = "" if found.slot is None else f", slot {found.slot}"
    place = "" if found.step is None else f" at step {found.step}, row {found.row}, query {found.query}{layer}{slot}"
    return f"cause {found.cause.value}{place}: {found.evidence}"


def _explanation(finding: Finding, case: CaseResult) -> str:
    layer = "" if finding.layer is None else f", layer {finding.layer}"
    place = f"{finding.check.value} at step {finding.step}, row {finding.row}, query {finding.query}{layer}"
    output_index = finding.stream_index - len(case.prompt_ids)
    token = f"prompt token {finding.stream_index}" if output_index < 0 else f"output token {output_index}"
    expected = "" if finding.expected is None else f"expected {finding.expected}; "
    return f"{place}: {finding.message} ({expected}{token})"
