"""`make selftest-all`: the whole self-test on small random models of nine architectures, written to docs/results.md.

Exits 1 when a fault was not caught or not named right, a legal variant not certified, or a mutant survived.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from results import append_block

from specaudit.core.selftest_outcomes import CellOutcome, Fate, Outcome, SubjectOutcome
from specaudit.core.shares import share
from specaudit.report.numbers import interval
from specaudit.selftest.plan import audit_subject, choose_faults
from specaudit.selftest.subjects import random_subject

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ARCHITECTURES = "llama,qwen3,glm4,gpt2,opt,gpt-neox,mistral,gemma3,phi3"
NOTHING = "-"


def main() -> None:
    """Run the self-test and append its block to docs/results.md."""
    parser = argparse.ArgumentParser(description="The whole self-test, on small random models in float64.")
    parser.add_argument("--architectures", default=ARCHITECTURES, help="comma-separated")
    parser.add_argument("--mutants", type=int, default=200, help="for each architecture")
    options = parser.parse_args()
    outcomes = []
    for number, name in enumerate(options.architectures.split(",")):
        print(f"{name} ...", flush=True)
        outcomes.append(
            audit_subject(
                random_subject(name),
                choose_faults(None),
                mutants=options.mutants,
                seed=number,
                on_step=lambda: None,
                ablates=True,
            )
        )
        print(f"{name}: {'passed' if outcomes[-1].is_passed else 'FAILED'}", flush=True)
    title = f"Self-test: {len(choose_faults(None))} faults in three cache layouts, {options.mutants} mutants a model"
    append_block(title, [*_totals(outcomes), *_matrix(outcomes), *_survivors(outcomes), *_ablation(outcomes)])
    sys.exit(0 if all(outcome.is_passed for outcome in outcomes) else 1)


def _tried(outcome: SubjectOutcome) -> list[CellOutcome]:
    return [cell for cell in outcome.cells if cell.outcome is not Outcome.INAPPLICABLE]


def _totals(outcomes: Sequence[SubjectOutcome]) -> list[str]:
    cells = [cell for outcome in outcomes for cell in _tried(outcome)]
    rows = [row for cell in cells for row in cell.rows]
    variants = [one for outcome in outcomes for one in outcome.variants if one.is_tried]
    right = sum(cell.outcome is Outcome.RIGHT for cell in cells)
    late = sum(bool(row.delay) for row in rows)
    exact = sum(row.is_exact for row in rows)
    blind = sum(row.rouge_l is not None and row.rouge_l > 0.9 for row in rows)
    return [
        "Small random models in float64, batches of 3, K = 3, 16 new tokens. A cell is one fault in one layout on one "
        "architecture; cells share prompts and models, so their intervals are narrower than they should be.",
        "",
        f"- caught and named right: {_share(right, len(cells))}; found later than the step where it shows: {late} rows",
        f"- legal variants certified: {_share(sum(one.is_certified for one in variants), len(variants))}",
        f"- outputs that a fault touched and exact match would have passed: {_share(exact, len(rows))}; ROUGE-L above "
        f"0.9 (token ids as words): {_share(blind, len(rows))}",
    ]


def _matrix(outcomes: Sequence[SubjectOutcome]) -> list[str]:
    """Return the table of faults and architectures: layouts in which a fault was right, of those where it applies."""
    lines = ["", "Layouts in which the fault was caught and named right, of those where it applies:", ""]
    lines += [_line(["fault", *(outcome.subject for outcome in outcomes)]), _line(["---"] * (len(outcomes) + 1))]
    for fault in choose_faults(None):
        cells = [[cell for cell in _tried(outcome) if cell.fault == fault.name] for outcome in outcomes]
        lines.append(_line([fault.name, *(_right(mine) for mine in cells)]))
    wrong = [
        f"- {outcome.subject}: {cell.fault}, {cell.layout}: {cell.outcome}; "
        + "; ".join(
            f"row {row.row}: {row.cause}, {row.evidence}" for row in cell.rows if row.cause not in cell.expected
        )
        for outcome in outcomes
        for cell in _tried(outcome)
        if cell.outcome is not Outcome.RIGHT
    ]
    return [*lines, "", *(["Not right:", "", *wrong] if wrong else ["None was missed or misnamed."])]


def _right(cells: Sequence[CellOutcome]) -> str:
    return f"{sum(cell.outcome is Outcome.RIGHT for cell in cells)}/{len(cells)}" if cells else NOTHING


def _survivors(outcomes: Sequence[SubjectOutcome]) -> list[str]:
    mutants = [mutant for outcome in outcomes for mutant in outcome.mutants]
    survivors = [
        f"- {outcome.subject}, mutant {mutant.number}: {mutant.description}"
        for outcome in outcomes
        for mutant in outcome.mutants
        if mutant.fate is Fate.SURVIVED
    ]
    harmful = [mutant for mutant in mutants if mutant.changes_logits]
    caught = sum(mutant.fate is Fate.CAUGHT for mutant in harmful)
    harmless = sum(mutant.fate is Fate.HARMLESS for mutant in mutants)
    early = sum(mutant.fate is Fate.CAUGHT for mutant in mutants) - caught
    return [
        "",
        f"Mutants: {_share(caught, len(harmful))} of those that change a logit were caught; {harmless} of {len(mutants)} "
        f"change none and were certified, {early} change none and were caught.",
        *(["", "Survivors:", "", *survivors] if survivors else []),
    ]


def _ablation(outcomes: Sequence[SubjectOutcome]) -> list[str]:
    """Return what would have been caught with less: outputs alone, or the slots of some layers alone."""
    cells = [cell for outcome in outcomes for cell in _tried(outcome) if cell.outcome is not Outcome.NOT_MADE]
    in_trace = [cell for cell in cells if any(check != "output" for row in cell.rows for check in row.caught_by)]
    mutants = [mutant for outcome in outcomes for mutant in outcome.mutants if mutant.changes_logits]
    by_output = (
        sum(any(not row.is_exact for row in cell.rows) for cell in in_trace),
        sum(mutant.changes_output for mutant in mutants),
    )
    rows = [("outputs alone", *by_output)]
    for name, key in (("first layer", "first"), ("first and last layer", "ends"), ("all layers", "all")):
        rows.append(
            (name, sum(key in cell.seen_by for cell in in_trace), sum(key in mutant.seen_by for mutant in mutants))
        )
    lines = ["", "What would have been caught with less, of the faults inside the target and of the mutants that change a "
             "logit:", "", _line(["looked at", "faults", "mutants"]), _line(["---"] * 3)]  # fmt: skip
    return lines + [_line([name, _share(one, len(in_trace)), _share(two, len(mutants))]) for name, one, two in rows]


def _share(count: int, total: int) -> str:
    return f"{count}/{total} ({interval(share(count, total))})" if total else "0/0"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
