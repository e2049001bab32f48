"""Displaced outputs: right for a prompt, and given to another.

Rows that change places give outputs that look fine one by one. An output that equals the reference of another prompt
says where it belongs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specaudit.core.vocabulary import Compared, Verdict

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from specaudit.core.records import CaseResult

LEAST_LENGTH = 2
"""Tokens or characters of an output that has changed places: two that are wrong may well swap "0" and "1" by chance."""

LEAST_DIFFERENT = 4
"""Different tokens or characters of an output that was given twice: small models write long rows of zeros for many
prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Displacement:
    """Where a diverged output belongs."""

    case_id: str
    """Case that was given the output."""

    owner: str
    """Prompt whose reference it equals; the first of several, of those that changed places where it did."""

    is_permuted: bool
    """Whether outputs changed places: the owner's output belongs to a further prompt, and so on in a ring."""


def displacements(cases: Sequence[CaseResult]) -> dict[str, Displacement]:
    """Return the displaced outputs among the cases of one arm, by case id; what is too short to tell has no place."""
    owners = _owners(cases)
    displaced = [case for case in cases if case.verdict is Verdict.DIVERGED and len(_units(case)) >= LEAST_LENGTH]
    displaced = [case for case in displaced if _output(case) in owners]
    permuted = _permuted(displaced)
    displaced = [case for case in displaced if case.case_id in permuted or len(set(_units(case))) >= LEAST_DIFFERENT]
    owners_in_rings = _owners(case for case in displaced if case.case_id in permuted)
    return {
        case.case_id: Displacement(
            case_id=case.case_id,
            owner=(owners_in_rings if case.case_id in permuted else owners)[_output(case)],
            is_permuted=case.case_id in permuted,
        )
        for case in displaced
    }


def _owners(cases: Iterable[CaseResult]) -> dict[Hashable, str]:
    """Return the first prompt of each reference."""
    owners: dict[Hashable, str] = {}
    for case in cases:
        owners.setdefault(_reference(case), case.prompt_id)
    return owners


def _permuted(cases: Sequence[CaseResult]) -> set[str]:
    """Return the largest set in which every output is another's reference and every reference another's output.

    Linear: what has lost its partner is taken out, and then those that have lost theirs by it.
    """
    by_reference: dict[Hashable, set[int]] = {}
    by_output: dict[Hashable, set[int]] = {}
    for place, case in enumerate(cases):
        by_reference.setdefault(_reference(case), set()).add(place)
        by_output.setdefault(_output(case), set()).add(place)
    kept = set(range(len(cases)))
    todo = list(kept)
    while todo:
        place = todo.pop()
        output, reference = _output(cases[place]), _reference(cases[place])
        if place not in kept or (by_reference.get(output) and by_output.get(reference)):
            continue
        kept.remove(place)
        by_reference[reference].discard(place)
        by_output[output].discard(place)
        todo += [*by_output.get(reference, ()), *by_reference.get(output, ())]
    return {cases[place].case_id for place in kept}


def _output(case: CaseResult) -> Hashable:
    return case.output_text if case.compared is Compared.TEXT else case.output_ids


def _reference(case: CaseResult) -> Hashable:
    return case.reference_text if case.compared is Compared.TEXT else case.reference_ids


def _units(case: CaseResult) -> Sequence[Hashable]:
    return (case.output_text if case.compared is Compared.TEXT else case.output_ids) or ()
