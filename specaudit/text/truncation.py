"""Truncation: the output breaks off where the reference goes on.

Two signs, either is enough. The output is the beginning of the reference (an EOS at the end of either left out), so
what is missing is known. Or it is shorter than the reference and has no EOS at its end, so it neither finished nor used
the tokens that the reference was given; this needs the EOS ids. A different ending of its own is none. One missing
token is enough, as a whole sentence can hang on it; a missing EOS alone is not seen by a reader and does not count. The
extent is what there is, in tokens or, where only texts are known, in characters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.records import SymptomFinding
from specaudit.core.vocabulary import Symptom
from specaudit.text.emptiness import is_empty

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.text.output_pair import OutputPair


def find_truncation(pair: OutputPair) -> SymptomFinding | None:
    """Return that the candidate breaks off early, or None. An empty output is `empty`, not truncated."""
    if is_empty(pair.candidate, pair):
        return None
    candidate, reference = pair.candidate.ids, pair.reference.ids
    if candidate is None or reference is None:
        return _of_texts((pair.candidate.text or "").rstrip(), (pair.reference.text or "").rstrip())
    eos_ids = pair.vocabulary.eos_ids
    whole, wanted = (_without_eos(ids, eos_ids or frozenset()) for ids in (candidate, reference))
    is_beginning = wanted[: len(whole)] == whole
    has_stopped_midway = eos_ids is not None and len(whole) == len(candidate)
    if len(whole) >= len(wanted) or not (is_beginning or has_stopped_midway):
        return None
    return _finding(len(whole), len(wanted), unit="tokens", onset=len(whole), is_beginning=is_beginning)


def _of_texts(candidate: str, reference: str) -> SymptomFinding | None:
    if len(candidate) >= len(reference) or not reference.startswith(candidate):
        return None
    return _finding(len(candidate), len(reference), unit="characters", onset=None, is_beginning=True)


def _finding(length: int, wanted: int, *, unit: str, onset: int | None, is_beginning: bool) -> SymptomFinding:
    return SymptomFinding(
        symptom=Symptom.TRUNCATION,
        onset=onset,
        extent=length,
        reference_extent=wanted,
        what=f"only the first {length} of {wanted} {unit}"
        if is_beginning
        else f"breaks off after {length} {unit} without an EOS, the reference has {wanted}",
    )


def _without_eos(ids: Sequence[int], eos_ids: frozenset[int]) -> tuple[int, ...]:
    return tuple(ids[:-1]) if ids and ids[-1] in eos_ids else tuple(ids)
