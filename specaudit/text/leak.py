"""Leak: padding stands inside the output.

The pad id counts only where it is a special token. Vocabularies without one lend an ordinary token (GPT-2's id 0 is
"!"), which says nothing, and which is the reason that padding is known by length everywhere else. Where the pad id is
also an EOS, the one that ends the output does not count. One more than the reference has is a symptom. The extent is
in tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.comparison import shared_length
from specaudit.core.records import SymptomFinding
from specaudit.core.vocabulary import Symptom

if TYPE_CHECKING:
    from specaudit.text.output_pair import OutputPair, Vocabulary


def find_leak(pair: OutputPair) -> SymptomFinding | None:
    """Return the padding of which the candidate has more than the reference, or None; it takes ids."""
    candidate, reference = pair.candidate.ids, pair.reference.ids
    if candidate is None or reference is None or pair.vocabulary.pad_id not in pair.vocabulary.textless_ids:
        return None
    places, excused = _places(candidate, pair.vocabulary), len(_places(reference, pair.vocabulary))
    if len(places) <= excused:
        return None
    shared = shared_length(candidate, reference)
    noun = "padding token" if len(places) == 1 else "padding tokens"
    return SymptomFinding(
        symptom=Symptom.LEAK,
        onset=next((place for place in places if place >= shared), places[-1]),
        extent=len(places),
        reference_extent=excused,
        what=f"{len(places)} {noun} inside the output: id {pair.vocabulary.pad_id}",
    )


def _places(ids: tuple[int, ...], vocabulary: Vocabulary) -> list[int]:
    """Return where padding stands; a pad id that is also an EOS may end an output."""
    may_end = vocabulary.pad_id in (vocabulary.eos_ids or ())
    ended = ids[:-1] if may_end and ids else ids
    return [place for place, token in enumerate(ended) if token == vocabulary.pad_id]
