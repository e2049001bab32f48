"""One fault in one layout: made in a trial, and what was found of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from specaudit.core.comparison import partial_match
from specaudit.core.selftest_outcomes import CellOutcome, Outcome, RowOutcome
from specaudit.core.vocabulary import Sync
from specaudit.faults.applicability import inapplicable
from specaudit.faults.decoder import FaultyDecoder
from specaudit.faults.fault import Group
from specaudit.faults.moments import AT
from specaudit.selftest.audited import Audited, audit, ends_of
from specaudit.text.rouge import rouge_l

if TYPE_CHECKING:
    from specaudit.faults.fault import Fault, Layout
    from specaudit.faults.trials import Trial
    from specaudit.selftest.subjects import Subject

TRIES = 6
"""Draft seeds that are tried for one in which the fault can be made."""


def try_fault(fault: Fault, layout: Layout, subject: Subject, *, seed: int, ablates: bool = False) -> CellOutcome:
    """Return what becomes of a fault in a layout; `ablates` asks what recorders of some layers alone would have seen."""
    reason = inapplicable(fault, layout, subject.model)
    if reason is not None:
        return _cell(fault, layout, Outcome.INAPPLICABLE, remark=reason)
    trial = subject.trials[fault.end]
    if trial is None:
        return _cell(fault, layout, Outcome.NOT_MADE, remark=f"no token of the outputs can end a row {fault.end}")
    for number in range(seed, seed + TRIES):
        decoder = decoder_with(fault, layout)
        audited = audit(
            decoder.decode,
            subject.model,
            trial.draft(fault.replaced, seed=number),
            trial,
            restricted=ends_of(subject) if ablates else None,
        )
        touched = _touched(fault, decoder, audited, trial)
        if touched and (fault.group is not Group.ACCEPTANCE or not _holds_padding(audited, trial)):
            return _judged(fault, layout, subject, trial, audited, touched)
    return _cell(fault, layout, Outcome.NOT_MADE, remark=f"no round of {TRIES} trials suits it")


def decoder_with(fault: Fault, layout: Layout) -> FaultyDecoder:
    """Return the decoder with a fault in it, new for one call."""
    return FaultyDecoder(
        layout=layout,
        injection=fault.make(),
        places=fault.places,
        compacts_at=AT if fault.is_compacting else None,
    )


def _cell(
    fault: Fault, layout: Layout, outcome: Outcome, *, rows: tuple[RowOutcome, ...] = (), remark: str | None = None
) -> CellOutcome:
    return CellOutcome(
        fault=fault.name,
        layout=layout,
        outcome=outcome,
        expected=tuple(cause.value for cause in fault.causes),
        rows=rows,
        remark=remark,
    )


def _touched(fault: Fault, decoder: FaultyDecoder, audited: Audited, trial: Trial) -> dict[int, int | None]:
    """Return the rows that the fault touched, with the step where it did; in stopping and outputs those that differ."""
    if fault.group in {Group.STOPPING, Group.OUTPUTS}:
        pairs = enumerate(zip(audited.outputs, trial.expected, strict=True))
        return {row: None for row, (output, expected) in pairs if output != expected}
    return dict(sorted(decoder.marks.items()))


def _holds_padding(audited: Audited, trial: Trial) -> bool:
    """Return whether a draft happened to propose padding which then stands in an output: nobody could call it right."""
    return any(trial.pad_token_id in output for output in audited.outputs)


def _judged(
    fault: Fault, layout: Layout, subject: Subject, trial: Trial, audited: Audited, touched: dict[int, int | None]
) -> CellOutcome:
    rows = tuple(_row(row, fault, subject, trial, audited, step) for row, step in touched.items())
    expected = {cause.value for cause in fault.causes}
    alarm = next(
        (
            row
            for row, judgement in enumerate(audited.judgements)
            if row not in touched
            and (judgement.sync is not Sync.CERTIFIED or audited.outputs[row] != trial.expected[row])
        ),
        None,
    )
    if not all(row.caught_by for row in rows):
        outcome = Outcome.MISSED
    elif not all(row.cause in expected for row in rows):
        outcome = Outcome.MISNAMED
    else:
        outcome = Outcome.RIGHT if alarm is None else Outcome.FALSE_ALARM
    remark = None if alarm is None else f"row {alarm}, not touched, is {audited.judgements[alarm].sync}"
    return replace(
        _cell(fault, layout, outcome, rows=rows, remark=remark),
        seen_by=tuple(
            name
            for name, judgements in audited.by_layers.items()
            if any(judgements[row].sync is not Sync.CERTIFIED for row in touched)
        ),
    )


def _row(row: int, fault: Fault, subject: Subject, trial: Trial, audited: Audited, step: int | None) -> RowOutcome:
    output, expected, judgement = audited.outputs[row], trial.expected[row], audited.judgements[row]
    cause = next(iter(audited.causes[row]), None)
    checks = [finding.check.value for finding in judgement.findings] if judgement.sync is Sync.VIOLATED else []
    found = judgement.findings[0].step if judgement.findings else None
    return RowOutcome(
        row=row,
        caught_by=(*checks, *(["output"] if output != expected else [])),
        cause=None if cause is None else cause.cause.value,
        evidence=None if cause is None else cause.evidence,
        delay=None if step is None or found is None or fault.origin is None else found - step - fault.origin,
        is_exact=output == expected,
        partial_match=partial_match(expected, output),
        rouge_l=rouge_l(subject.text_of(expected), subject.text_of(output)),
    )
