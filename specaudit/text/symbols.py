"""Symbols: marks that belong to no text.

Counted are special tokens inside the output (among the ids, or spelled out where only texts are known), U+FFFD,
control characters, and runs of punctuation. One mark of a kind beyond the reference's count is a symptom: none of the
first three is ever written, and a run has to be LONGEST_PUNCTUATION + 1 characters long to be one. The extent counts
marks of the kinds that exceed the reference; a run counts once.

Ids and text are both looked at. Byte-level tokens split characters, so an output that the budget ends may break off
inside one: up to CUT_MARKS of U+FFFD at its very end are no corruption.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unicodedata import category

from specaudit.core.comparison import shared_length
from specaudit.core.records import SymptomFinding
from specaudit.core.vocabulary import Symptom

if TYPE_CHECKING:
    from collections.abc import Callable

    from specaudit.text.output_pair import OutputPair, TextOf, Vocabulary, Writing

LONGEST_PUNCTUATION = 7
"""Characters of the longest run of punctuation that is taken for text: `");\\n}` and `?!...` are shorter, Markdown
rules and table borders longer, which the reference excuses where it has them."""

CUT_MARKS = 3
"""A character has four bytes at most, so what is left of one at the end decodes to three U+FFFD at most."""

REPLACEMENT = "\ufffd"

_SPELLED_OUT = re.compile(r"<\|[A-Za-z0-9_]+\|>|<(?:unk|pad|bos|eos)>|</s>|\[(?:UNK|PAD|CLS|SEP|MASK)\]")
"""Special tokens as the common vocabularies spell them; `<s>` is left out, HTML has it too."""

_LONG_RUN = re.compile(f"p{{{LONGEST_PUNCTUATION + 1},}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """One kind of mark."""

    singular: str
    plural: str
    places: Callable[[str], list[int]]
    """Returns the character indices in a text at which a mark begins."""


def find_symbols(pair: OutputPair) -> SymptomFinding | None:
    """Return the marks of which the candidate has more than the reference, or None."""
    excesses = [excess for excess in (_excess_of_ids(pair), *(_excess(kind, pair) for kind in _KINDS)) if excess]
    if not excesses:
        return None
    onsets = [excess.onset for excess in excesses if excess.onset is not None]
    return SymptomFinding(
        symptom=Symptom.SYMBOLS,
        onset=min(onsets, default=None),
        extent=sum(excess.count for excess in excesses),
        reference_extent=sum(excess.reference_count for excess in excesses),
        what=", ".join(excess.what for excess in excesses),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Excess:
    """A kind of which the candidate has more than the reference."""

    what: str
    count: int
    reference_count: int
    onset: int | None


def _excess_of_ids(pair: OutputPair) -> _Excess | None:
    """Compare special tokens by id; where ids are missing, their spellings are compared instead."""
    candidate, reference = pair.candidate.ids, pair.reference.ids
    if candidate is None or reference is None or not pair.vocabulary.textless_ids:
        return _excess(_SPECIAL, pair)
    places, reference_places = (_special_places(ids, pair.vocabulary) for ids in (candidate, reference))
    if len(places) <= len(reference_places):
        return None
    shared = shared_length(candidate, reference)
    return _Excess(
        what=_counted(_SPECIAL, len(places)),
        count=len(places),
        reference_count=len(reference_places),
        onset=next((place for place in places if place >= shared), None),
    )


def _special_places(ids: tuple[int, ...], vocabulary: Vocabulary) -> list[int]:
    """Return where special tokens stand, the EOS that ends the output and padding (a leak) left out."""
    inside = vocabulary.textless_ids - {vocabulary.pad_id}
    ends = vocabulary.eos_ids or frozenset()
    return [
        place for place, token in enumerate(ids) if token in inside and not (place == len(ids) - 1 and token in ends)
    ]


def _excess(kind: _Kind, pair: OutputPair) -> _Excess | None:
    text, reference_text = (_without_cut_end(writing, pair.vocabulary) for writing in (pair.candidate, pair.reference))
    if text is None or reference_text is None:
        return None
    places, reference_count = kind.places(text), len(kind.places(reference_text))
    if len(places) <= reference_count:
        return None
    shared = shared_length(text, reference_text)
    first = next((place for place in places if place >= shared), places[-1])
    return _Excess(
        what=_counted(kind, len(places)),
        count=len(places),
        reference_count=reference_count,
        onset=_token_at(first, pair.candidate.ids, pair.vocabulary.text_of),
    )


def _without_cut_end(writing: Writing, vocabulary: Vocabulary) -> str | None:
    """Return a text without the U+FFFD that half a character at its end leaves, unless an EOS follows them."""
    text = writing.text
    if text is None or (writing.ids and writing.ids[-1] in (vocabulary.eos_ids or ())):
        return text
    whole = text.rstrip(REPLACEMENT)
    return whole if len(text) - len(whole) <= CUT_MARKS else text


def _token_at(place: int, ids: tuple[int, ...] | None, text_of: TextOf | None) -> int | None:
    """Return the index of the token that writes character `place`, or None where there is no telling."""
    if ids is None or text_of is None:
        return None
    low, high = 0, len(ids) - 1
    while low < high:  # the first token with which the text is longer than `place`
        middle = (low + high) // 2
        if len(text_of(ids[: middle + 1])) > place:
            high = middle
        else:
            low = middle + 1
    return low


def _counted(kind: _Kind, count: int) -> str:
    return f"{count} {kind.singular if count == 1 else kind.plural}"


def _control_places(text: str) -> list[int]:
    return [place for place, character in enumerate(text) if character not in "\t\n\r" and category(character) == "Cc"]


def _punctuation_places(text: str) -> list[int]:
    signs = "".join("p" if category(character)[0] in "PS" and character != REPLACEMENT else " " for character in text)
    return [run.start() for run in _LONG_RUN.finditer(signs)]


_SPECIAL = _Kind(
    singular="special token",
    plural="special tokens",
    places=lambda text: [match.start() for match in _SPELLED_OUT.finditer(text)],
)
_KINDS = (
    _Kind(
        singular="U+FFFD",
        plural="U+FFFD",
        places=lambda text: [place for place, character in enumerate(text) if character == REPLACEMENT],
    ),
    _Kind(singular="control character", plural="control characters", places=_control_places),
    _Kind(singular="run of punctuation", plural="runs of punctuation", places=_punctuation_places),
)
