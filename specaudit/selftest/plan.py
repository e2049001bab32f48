"""What the self-test tries on one model, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specaudit.core.errors import UsageError, nearest
from specaudit.core.selftest_outcomes import SubjectOutcome, VariantOutcome
from specaudit.core.vocabulary import Sync
from specaudit.faults.catalogue import FAULTS
from specaudit.faults.decoder import FaultyDecoder
from specaudit.faults.fault import End, Group, Layout
from specaudit.faults.legal.variants import VARIANTS
from specaudit.faults.sight import has_windows
from specaudit.selftest.audited import audit
from specaudit.selftest.cells import try_fault
from specaudit.selftest.mutation import try_mutant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from specaudit.faults.fault import Fault
    from specaudit.selftest.subjects import Subject

VARIANT_DRAFTS = (0.0, 0.5, 1.0)
"""Shares of wrong proposals that each legal variant is tried with, besides the model's own draft."""


def choose_faults(names: Sequence[str] | None) -> tuple[Fault, ...]:
    """Return the faults that are named, one by one or by their group; all for None."""
    if names is None:
        return tuple(FAULTS.values())
    groups = {group.value for group in Group}
    unknown = next((name for name in names if name not in FAULTS and name not in groups), None)
    if unknown is not None:
        raise UsageError(f"unknown fault '{unknown}'", where="--faults", way_out=nearest(unknown, [*FAULTS, *groups]))
    return tuple(fault for fault in FAULTS.values() if fault.name in names or fault.group.value in names)


def audit_subject(
    subject: Subject,
    faults: Sequence[Fault],
    *,
    mutants: int,
    seed: int,
    on_step: Callable[[], None],
    ablates: bool = False,
) -> SubjectOutcome:
    """Try faults, legal variants and mutants on a model; `on_step` is called after each, `ablates` as in `try_fault`."""

    def noted(outcomes: Iterator[Any]) -> tuple[Any, ...]:
        kept = []
        for outcome in outcomes:
            kept.append(outcome)
            on_step()
        return tuple(kept)

    return SubjectOutcome(
        subject=subject.name,
        cells=noted(
            try_fault(fault, layout, subject, seed=seed, ablates=ablates) for fault in faults for layout in Layout
        ),
        variants=noted(_variants(subject, seed)),
        mutants=noted(try_mutant(number, subject, seed=seed) for number in range(mutants)),
    )


def _variants(subject: Subject, seed: int) -> Iterator[VariantOutcome]:
    is_windowed = has_windows(subject.model)
    for layout in Layout:
        if layout is Layout.STATIC and is_windowed:
            yield _left_out(f"without-a-fault-{layout}", "a static cache drops what leaves a window")
        else:
            yield _tried(f"without-a-fault-{layout}", FaultyDecoder(layout=layout).decode, subject, seed)
    for variant in VARIANTS:
        if variant.counts_columns and is_windowed:
            yield _left_out(variant.name, "padding or rejected slots take places in a window")
        else:
            yield _tried(variant.name, variant.decode, subject, seed)


def _left_out(name: str, reason: str) -> VariantOutcome:
    return VariantOutcome(name=name, is_certified=False, is_tried=False, remark=reason)


def _tried(name: str, decode: Callable[..., list[list[int]]], subject: Subject, seed: int) -> VariantOutcome:
    for end in (End.NOWHERE, End.IN_OUTPUT):
        trial = subject.trials[end]
        if trial is None:
            continue
        drafts = [(f"{rate:g} of the proposals wrong", trial.draft(rate, seed=seed)) for rate in VARIANT_DRAFTS]
        drafts += [("its own draft", subject.draft)] if subject.draft is not None else []
        for what, draft in drafts:
            audited = audit(decode, subject.model, draft, trial)
            for row, judgement in enumerate(audited.judgements):
                if judgement.sync is not Sync.CERTIFIED or audited.outputs[row] != trial.expected[row]:
                    why = judgement.reason or next((one.message for one in judgement.findings), "another output")
                    remark = f"row {row}, {what}: {judgement.sync}, {why}"
                    return VariantOutcome(name=name, is_certified=False, is_tried=True, remark=remark)
    return VariantOutcome(name=name, is_certified=True, is_tried=True, remark=None)
