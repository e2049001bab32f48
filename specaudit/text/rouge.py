"""ROUGE-L, as the rouge-score library counts it: what the usual metric makes of an output.

It keeps runs of a to z and 0 to 9 after lower-casing and drops all else, so a text in another script has nothing that
it can score. Loading the library takes a second (nltk, numpy), so it is loaded when the first text is scored.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

LARGEST_TABLE = 1_000_000
"""Most cells of the library's table of words by words, which takes a tenth of a second and 8 MB for a million."""

_WORDS = re.compile(r"[a-z0-9]+")


def rouge_l(reference: str, candidate: str) -> float | None:
    """Return the F1 of ROUGE-L (Lin 2004) of `candidate` against `reference`, in [0, 1], without stemming.

    None where it is not applicable: one of the texts has no letter a to z and no digit. Give texts without special
    tokens, whose names would count as words. Long texts, for which the library would take minutes, are counted here,
    to the same number.
    """
    expected, actual = (_WORDS.findall(text.lower()) for text in (reference, candidate))
    if not expected or not actual:
        return None
    if expected == actual:
        return 1.0
    if len(expected) * len(actual) <= LARGEST_TABLE:
        return float(_scorer().score(reference, candidate)["rougeL"].fmeasure)
    return 2 * common_length(expected, actual) / (len(expected) + len(actual))


def common_length(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest common subsequence, a word of `other` at a time over the bits of all of `one`.

    Source: Crochemore, Iliopoulos, Pinzon and Reid 2001, "A fast and practical bit-vector algorithm for the longest
    common subsequence problem". A bit of `row` is 0 where the length grows by one.
    """
    places: dict[str, int] = {}
    for place, word in enumerate(one):
        places[word] = places.get(word, 0) | 1 << place
    every = (1 << len(one)) - 1
    row = every
    for word in other:
        hits = row & places.get(word, 0)
        row = ((row + hits) | (row - hits)) & every
    return len(one) - row.bit_count()


@cache
def _scorer() -> Any:
    from rouge_score import rouge_scorer

    untyped: Any = rouge_scorer
    return untyped.RougeScorer(["rougeL"], use_stemmer=False)
