"""Repetition: a token or a phrase over and over.

A *loop* is a stretch in which every token equals the one a period before. It counts from LEAST_COPIES copies and
LEAST_TOKENS tokens on; copies that differ, such as the items of a counted list, are none. The reference excuses the
same loop, wherever it stands and at whichever token of the phrase it begins, up to its own length: what is left over
has to be LEAST_TOKENS again. The extent is in tokens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate
from operator import eq
from typing import TYPE_CHECKING

from specaudit.core.records import SymptomFinding
from specaudit.core.vocabulary import Symptom

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.text.output_pair import OutputPair, Writing

LEAST_COPIES = 3
"""A phrase said twice is style; degenerate text has been counted from three copies on (Holtzman et al. 2020,
arXiv 1904.09751)."""

LEAST_TOKENS = 8
"""Half a line. "ha ha ha", an ellipsis, an indent or a row of zeros stays below it."""

LONGEST_PERIOD = 64
"""Tokens of the longest phrase looked for: a paragraph of four lines. Three copies take 192 tokens."""

SHOWN_CHARACTERS = 40
"""Most characters of a phrase that are quoted."""

_PIECE = re.compile(r"[^\W\u2e80-\uffff]+|[^\w\s]+|\S")
"""What stands for a token where only texts are known: a word, a run of signs, one character of a script without spaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A stretch of tokens that repeats itself."""

    start: int
    """Index of its first token, the first copy included."""

    length: int
    """Tokens that it spans, all copies and an unfinished last one included."""

    phrase: tuple[int, ...]
    """The copy that it begins with, as long as the smallest period of the stretch."""

    @property
    def copies(self) -> int:
        """Return how many whole copies there are."""
        return self.length // len(self.phrase)

    def is_rotation_of(self, other: Loop) -> bool:
        """Return whether both repeat the same phrase, begun at any of its tokens."""
        period = len(self.phrase)
        twice = self.phrase * 2
        return period == len(other.phrase) and any(
            twice[first : first + period] == other.phrase for first in range(period)
        )


def find_repetition(pair: OutputPair) -> SymptomFinding | None:
    """Return the loop of the candidate that goes furthest beyond the reference's own, or None."""
    candidate, reference = _tokens(pair)
    worst: SymptomFinding | None = None
    loops = [loop for loop in find_loops(candidate) if loop.length >= LEAST_TOKENS and loop.copies >= LEAST_COPIES]
    excuses = find_loops(reference) if loops else []
    for loop in loops:
        excused = max((excuse.length for excuse in excuses if excuse.is_rotation_of(loop)), default=0)
        excess = loop.length - excused
        if excess >= LEAST_TOKENS and (worst is None or excess > worst.extent - worst.reference_extent):
            worst = SymptomFinding(
                symptom=Symptom.REPETITION,
                onset=loop.start if pair.candidate.ids is not None else None,
                extent=loop.length,
                reference_extent=excused,
                what=_what(loop, pair),
            )
    return worst


def find_loops(tokens: Sequence[int], *, longest_period: int = LONGEST_PERIOD) -> list[Loop]:
    """Return every stretch of at least two copies of a phrase, in order of its period, then of its start.

    A stretch is named once, with its smallest period: four times "a" is not also twice "a a".
    """
    loops: list[Loop] = []
    ends = [0] * len(tokens)  # where the longest loop that starts at a token ends
    for period in range(1, min(longest_period, len(tokens) // 2) + 1):
        agrees = bytes(map(eq, tokens[period:], tokens))  # 1 where a token equals the one a period before
        stretches = [(match.start(), match.end() + period) for match in re.finditer(rb"\x01{%d,}" % period, agrees)]
        reach = list(accumulate(ends, max)) if stretches else []
        for start, end in stretches:
            if end > reach[start]:
                loops.append(Loop(start=start, length=end - start, phrase=tuple(tokens[start : start + period])))
                ends[start] = max(ends[start], end)
    return loops


def _tokens(pair: OutputPair) -> tuple[Sequence[int], Sequence[int]]:
    """Return candidate and reference as numbers: ids where both have them, else the pieces of their texts, numbered."""
    if pair.candidate.ids is not None and pair.reference.ids is not None:
        return pair.candidate.ids, pair.reference.ids
    numbers: dict[str, int] = {}
    return _numbered(pair.candidate, numbers), _numbered(pair.reference, numbers)


def _numbered(writing: Writing, numbers: dict[str, int]) -> list[int]:
    return [numbers.setdefault(piece, len(numbers)) for piece in _PIECE.findall(writing.text or "")]


def _what(loop: Loop, pair: OutputPair) -> str:
    """Say what is repeated and how often: `4 tokens 6 times over: ' it is not'`."""
    noun = "piece" if pair.candidate.ids is None else "token"
    if len(loop.phrase) == 1:
        return f"one {noun} {loop.copies} times in a row{_quoted(loop, pair)}"
    return f"{len(loop.phrase)} {noun}s {loop.copies} times over{_quoted(loop, pair)}"


def _quoted(loop: Loop, pair: OutputPair) -> str:
    """Return the phrase for the end of a sentence, or nothing where its text is not known."""
    if pair.candidate.ids is None:
        pieces = _PIECE.findall(pair.candidate.text or "")
        phrase = " ".join(pieces[loop.start : loop.start + len(loop.phrase)])
    elif pair.vocabulary.text_of is not None:
        phrase = pair.vocabulary.text_of(loop.phrase)
    else:
        return f": id {loop.phrase[0]}" if len(loop.phrase) == 1 else ""
    return f": '{phrase if len(phrase) <= SHOWN_CHARACTERS else phrase[: SHOWN_CHARACTERS - 1] + '…'}'"
