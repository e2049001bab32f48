"""Coverage: whether a run went through what it takes for faults to show.

With a draft that is always right nothing is ever rolled back, and most faults of a speculative decoder are invisible; with
one that is always wrong no accepted draft is ever kept. What is required of an arm in which proposals were seen: a round
that rejected all of them, one that accepted some, one that accepted all; and, where rows were decoded together, a round in
which they accepted different numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specaudit.core.records import Coverage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from specaudit.core.records import CaseResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """What an arm did not go through."""

    decoder: str
    """Decoder as named on the command line."""

    batch_size: int | None
    """Planned rows a batch."""

    missing: tuple[str, ...]
    """Patterns that did not occur, for people."""

    way_out: str
    """What to try."""


def total_coverage(cases: Iterable[CaseResult]) -> Coverage | None:
    """Return what the cases of an arm went through together, or None where not one was observed."""
    seen = [case.coverage for case in cases if case.coverage is not None]
    if not seen:
        return None
    return Coverage(
        rejected=sum(one.rejected for one in seen),
        partly=sum(one.partly for one in seen),
        accepted=sum(one.accepted for one in seen),
        together=sum(one.together for one in seen),
        ragged=sum(one.ragged for one in seen),
        longest=max(one.longest for one in seen),
    )


def coverage_gaps(cases: Sequence[CaseResult]) -> tuple[Gap, ...]:
    """Return what arms with observed proposals did not go through, in order of first appearance."""
    arms: dict[tuple[object, ...], list[CaseResult]] = {}
    for case in cases:
        arms.setdefault((case.decoder, case.batch_size, case.draft_tokens, case.seed), []).append(case)
    return tuple(gap for of_arm in arms.values() if (gap := _gap(of_arm)) is not None)


def _gap(cases: Sequence[CaseResult]) -> Gap | None:
    coverage = total_coverage(cases)
    if coverage is None or not coverage.longest:
        return None
    missing = [
        pattern
        for pattern, count, is_required in (
            ("a round that rejected all proposals", coverage.rejected, True),
            ("a round that accepted some", coverage.partly, coverage.longest > 1),
            ("a round that accepted all", coverage.accepted, True),
            ("rows that accepted different numbers", coverage.ragged, coverage.together > 0),
        )
        if is_required and not count
    ]
    if not missing:
        return None
    way_out = "more prompts or tokens, or --draft noisy:0.12, or stress:0.4 for a built-in decoder"
    return Gap(decoder=cases[0].decoder, batch_size=cases[0].batch_size, missing=tuple(missing), way_out=way_out)
