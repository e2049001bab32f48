"""The report of a run on a terminal: models, table, worst failures, what was not seen, the verdict as the last line.

Pure presentation: it prints the records that it is given, runs nothing and needs no model. Everything that a model, a
prompt file or a decoder wrote passes through `visible`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.text import Text

from specaudit.core.shares import upper_bound_of_zero
from specaudit.core.summary import arm_key, is_failing, reference_ends
from specaudit.core.vocabulary import RunVerdict
from specaudit.report.arm_notes import arm_name, print_arm_notes
from specaudit.report.arm_table import PAPER_CHECKS, TABLE_WIDTH, arm_table, further_checks
from specaudit.report.category_table import print_category_table
from specaudit.report.failures import INDENT, print_failure, worst_failures
from specaudit.report.noise_notes import print_noise_notes
from specaudit.report.numbers import counted, parameters, percent_at_most
from specaudit.report.paragraph import print_paragraph, print_table
from specaudit.report.symbols import symbols_for
from specaudit.report.visible_text import shorten, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rich.console import Console

    from specaudit.core.gate import Decision
    from specaudit.core.records import AuditPlan, CaseResult, LeftOut, ModelRecord
    from specaudit.core.scores import Control
    from specaudit.core.summary import ArmKey, ArmSummary, ReasonCount, ReferenceEnds, RunModels
    from specaudit.report.symbols import Symbols

DEFAULT_DETAILS = 3
"""Failing cases shown in full."""

MOST_REASONS = 6
"""Reasons shown of those for which cases were not observed or not measured, the most frequent first."""

MOST_DECODERS = 4
"""Decoders named beside a reason."""

REASON_CELLS = 300
"""Most terminal cells of one reason or error message."""


def print_report(
    console: Console,
    plan: AuditPlan,
    models: RunModels,
    summaries: Sequence[ArmSummary],
    cases: Sequence[CaseResult],
    decision: Decision,
    *,
    details: int = DEFAULT_DETAILS,
    run_directory: str | None = None,
    token_texts: Mapping[int, str] | None = None,
    left_out: Sequence[LeftOut] = (),
    notices: Sequence[str] = (),
    controls: Sequence[Control] = (),
    planned_prompts: int | None = None,
) -> None:
    """Print a report to `console`, at most `details` failing cases in full, the verdict as its last line.

    `token_texts` maps token ids to their text, leading space included (`shown_token_ids` says which ids matter).
    Without it, as for a stored run, diffs show ids, and the outputs' texts around the first difference. `left_out` is what
    was asked for and not run, `planned_prompts` how many prompts each arm has, or None for as many as `cases` have.
    """
    symbols = symbols_for(console)
    _print_models(console, plan, models, cases, left_out, notices, symbols, planned_prompts)
    ends = reference_ends(cases, models.target.eos_token_ids)
    ending = _ending(ends, is_ignored=not models.target.eos_token_ids)
    _print_outcome(console, summaries, cases, symbols, details, run_directory, token_texts, ending=ending)
    print_noise_notes(console, controls, symbols)
    console.print()
    if run_directory is not None:
        console.print(_plain(f"run directory: {run_directory}", symbols), soft_wrap=True)
    _print_bound(console, summaries, decision, symbols)
    verdict = visible(verdict_line(decision), ascii_only=symbols.is_ascii)
    console.print(Text(verdict, style="bold"), soft_wrap=True)


def print_replay(
    console: Console,
    sides: Mapping[str, str],
    summaries: Sequence[ArmSummary],
    cases: Sequence[CaseResult],
    decision: Decision,
    *,
    details: int = DEFAULT_DETAILS,
) -> None:
    """Print the comparison of recordings as `print_report` prints a run; `sides` says under each label what was read."""
    symbols = symbols_for(console)
    label_cells = max(map(len, sides)) + 2
    for label, value in sides.items():
        print_paragraph(console, _plain(value, symbols), label=label.ljust(label_cells))
    _print_outcome(console, summaries, cases, symbols, details, None, None)
    console.print()
    _print_bound(console, summaries, decision, symbols)
    verdict = visible(verdict_line(decision), ascii_only=symbols.is_ascii)
    console.print(Text(verdict, style="bold"), soft_wrap=True)


def verdict_line(decision: Decision) -> str:
    """Return the last line of a report: `specaudit: lossless (exit 0): 48 of 48 cases identical, ...`."""
    return f"specaudit: {decision.verdict.value} (exit {decision.exit_code}): {', '.join(decision.reasons)}"


def _plain(text: str, symbols: Symbols) -> Text:
    return Text(visible(text, ascii_only=symbols.is_ascii))


def _print_models(
    console: Console,
    plan: AuditPlan,
    models: RunModels,
    cases: Sequence[CaseResult],
    left_out: Sequence[LeftOut],
    notices: Sequence[str],
    symbols: Symbols,
    planned_prompts: int | None,
) -> None:
    eos = ", ".join(map(str, models.target.eos_token_ids)) or "ignored"
    done = len({case.prompt_id for case in cases})
    prompts = counted(done, "prompt")
    if planned_prompts is not None and planned_prompts != done:
        prompts = f"{counted(planned_prompts, 'prompt')} planned, {done} done"
    tokens = counted(plan.max_new_tokens, "new token")
    rows = [("target", _model(models.target))]
    rows += [("draft", _model(models.draft))] if models.draft is not None else []
    rows += [("prompts", f"{plan.prompts}: {prompts}, at most {tokens} each, end of sequence {eos}")]
    if models.target.ignored_settings:
        rows += [("left out", f"{', '.join(models.target.ignored_settings)} (generation config; greedy ignores it)")]
    if models.target.applied_settings:
        rows += [("applied", f"{', '.join(models.target.applied_settings)} (generation config)")]
    rows += [("not run", f"{one.decoder} at batch {one.batch_size}: {one.reason}") for one in left_out]
    rows += [("notice", notice) for notice in notices]
    for label, value in rows:
        print_paragraph(console, _plain(value, symbols), label=f"{label:<9}")


def _model(model: ModelRecord) -> str:
    if model.digest is None:  # a draft without weights
        return f"{model.source}: {model.architecture}"
    size = f"{parameters(model.parameters)} parameters"
    return f"{model.source}: {model.architecture}, {size}, {model.dtype} on {model.device}, attention {model.attn}"


def _print_outcome(
    console: Console,
    summaries: Sequence[ArmSummary],
    cases: Sequence[CaseResult],
    symbols: Symbols,
    details: int,
    run_directory: str | None,
    token_texts: Mapping[int, str] | None,
    *,
    ending: Text | None = None,
) -> None:
    """Print what lies between the heading and the last lines: table, failures, what was not seen or measured."""
    if summaries:
        console.print()
        print_table(console, arm_table(summaries, symbols), least_width=TABLE_WIDTH)
        more = further_checks(summaries)
        names = ", ".join([*PAPER_CHECKS, *([f"more ({', '.join(more)})"] if more else [])])
        legend = f"below a share: its 95 % interval; {names}: cases violated, of those seen"
        print_paragraph(console, Text(legend, style="dim"))
        if ending is not None:
            print_paragraph(console, ending)
    print_category_table(console, summaries, symbols)
    print_arm_notes(console, summaries, symbols)
    _print_failures(console, summaries, cases, symbols, details, run_directory, token_texts)
    _print_reasons(console, summaries, symbols)


def _ending(ends: ReferenceEnds, *, is_ignored: bool) -> Text:
    """Say in how many prompts EOS was reached, and so whether the run can tell a decoder that runs past it."""
    text = f"reference: reached end of sequence in {ends.at_eos} of {counted(ends.prompts, 'prompt')}"
    if ends.at_eos or not ends.prompts:
        return Text(text, style="dim")
    way_out = "it is ignored" if is_ignored else "raise --max-new-tokens to reach it"
    return Text(f"{text}: how decoders end an output was not tested; {way_out}", style="yellow")


def _print_failures(
    console: Console,
    summaries: Sequence[ArmSummary],
    cases: Sequence[CaseResult],
    symbols: Symbols,
    details: int,
    run_directory: str | None,
    token_texts: Mapping[int, str] | None,
) -> None:
    shown = worst_failures(summaries, cases, details)
    displaced = {case_id: one for summary in summaries for case_id, one in summary.displacements.items()}
    for case in shown:
        console.print()
        print_failure(
            console,
            case,
            cases,
            symbols,
            token_texts=token_texts,
            displacement=displaced.get(case.case_id),
            run_directory=run_directory,
        )
    left = sum(is_failing(case) for case in cases) - len(shown)
    if left:
        place = "" if run_directory is None else "; report.json in the run directory lists them"
        console.print()
        print_paragraph(
            console, Text(f"{counted(left, 'more failing case' if shown else 'failing case')} not shown{place}")
        )


def _print_reasons(console: Console, summaries: Sequence[ArmSummary], symbols: Symbols) -> None:
    for heading, reasons in (
        (f"{symbols.partly} inner state not observed", _grouped(summaries, lambda summary: summary.unobserved)),
        (f"{symbols.unknown} unmeasured", _grouped(summaries, lambda summary: summary.errors)),
    ):
        if not reasons:
            continue
        console.print()
        console.print(Text(heading, style="yellow"))
        for reason, arms in reasons[:MOST_REASONS]:
            shown = shorten(visible(reason, ascii_only=symbols.is_ascii), REASON_CELLS, ellipsis=symbols.ellipsis)
            place = f", {_arm_names(list(arms))}" if len(summaries) > 1 else ""
            line = f"{counted(sum(arms.values()), 'case')}{visible(place, ascii_only=symbols.is_ascii)}: {shown}"
            print_paragraph(console, Text(line), indent=INDENT)
        rest = [sum(arms.values()) for _, arms in reasons[MOST_REASONS:]]
        if rest:
            more = f"{counted(sum(rest), 'case')} for {counted(len(rest), 'further reason')}, not shown"
            print_paragraph(console, Text(more), indent=INDENT)


def _grouped(
    summaries: Sequence[ArmSummary], reasons_of: Callable[[ArmSummary], tuple[ReasonCount, ...]]
) -> list[tuple[str, Counter[ArmKey]]]:
    """Return each reason with how many cases of which arms give it, the most frequent first."""
    counts: dict[str, Counter[ArmKey]] = {}
    for summary in summaries:
        for item in reasons_of(summary):
            counts.setdefault(item.reason, Counter())[arm_key(summary)] += item.count
    return sorted(counts.items(), key=lambda one: -one[1].total())


def _arm_names(arms: Sequence[ArmKey]) -> str:
    """Name arms by decoder, with their batch sizes where those are known: `eqspec at batch 1, 4, bsp at batch 4`."""
    sizes: dict[str, dict[str, None]] = {}
    for arm in arms:
        sizes.setdefault(arm.decoder, {}).update({} if arm.batch_size is None else {str(arm.batch_size): None})
    shown = [f"{decoder} at batch {', '.join(of)}" if of else decoder for decoder, of in sizes.items()]
    more = [f"{len(shown) - MOST_DECODERS} more"] if len(shown) > MOST_DECODERS else []
    return ", ".join([*shown[:MOST_DECODERS], *more])


def _print_bound(console: Console, summaries: Sequence[ArmSummary], decision: Decision, symbols: Symbols) -> None:
    """Print what a clean run rules out.

    The same prompts run in every arm, so the cases of a run are no independent trials. The prompts of one arm are, for
    a fault that strikes rows one by one, and its batches, for a fault that strikes a batch as a whole. The arm with the
    fewest of them says least; its bounds are printed.
    """
    if decision.verdict not in {RunVerdict.LOSSLESS, RunVerdict.EQUAL_OUTPUTS}:
        return
    weakest = min(summaries, key=lambda summary: (summary.prompts, summary.calls))
    failure = "diverged" if decision.verdict is RunVerdict.EQUAL_OUTPUTS else "failed"
    by_prompt = percent_at_most(upper_bound_of_zero(weakest.prompts))
    if weakest.batch_size is None:
        by_batch = "by batch not known, as nothing says what ran together"
    else:
        bound = percent_at_most(upper_bound_of_zero(weakest.calls))
        by_batch = f"{bound} % by batch ({counted(weakest.calls, 'batch', 'batches')})"
    line = (
        f"0 of {weakest.prompts} {failure}: below {by_prompt} % by prompt, {by_batch};"
        f" 95 % confidence, {arm_name(weakest, joint=' at')}"
    )
    print_paragraph(console, _plain(line, symbols))
