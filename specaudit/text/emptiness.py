"""Emptiness: the output has nothing to read, and the reference has.

White space, special tokens, padding and EOS are nothing. There is no threshold. The extent is in tokens that may stand
for text or, where only texts are known, in characters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.records import SymptomFinding
from specaudit.core.vocabulary import Symptom

if TYPE_CHECKING:
    from specaudit.text.output_pair import OutputPair, Writing


def find_emptiness(pair: OutputPair) -> SymptomFinding | None:
    """Return that the candidate is empty and the reference is not, or None."""
    if not is_empty(pair.candidate, pair) or is_empty(pair.reference, pair):
        return None
    return SymptomFinding(
        symptom=Symptom.EMPTY,
        onset=None if pair.candidate.ids is None else 0,
        extent=0,
        reference_extent=_extent(pair.reference, pair),
        what="nothing to read",
    )


def is_empty(writing: Writing, pair: OutputPair) -> bool:
    """Return whether a reader of `writing` finds nothing."""
    return _extent(writing, pair) == 0


def _extent(writing: Writing, pair: OutputPair) -> int:
    if writing.ids is None:
        return len((writing.text or "").strip())
    nothing = pair.vocabulary.textless_ids | {pair.vocabulary.pad_id}
    readable = [token for token in writing.ids if token not in nothing]
    text = writing.text if pair.vocabulary.text_of is None else pair.vocabulary.text_of(readable)
    is_blank = text is not None and not text.strip()
    return 0 if is_blank else len(readable)
