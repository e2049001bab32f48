"""Comparison of token ids: exact match, partial match, first divergence.

Exact and partial match are those of Zhang et al. (arXiv 2510.22876): exact is whole-output identity, partial is the share
of tokens before the first divergence, 1 for identical outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """Where a candidate first left the reference."""

    position: int
    """Index into the generated tokens; the prompt is not counted."""

    expected: int | None
    """Reference token id, or None where the reference had already stopped."""

    actual: int | None
    """Candidate token id, or None where the candidate had already stopped."""


def first_divergence(reference: Sequence[int], candidate: Sequence[int]) -> Divergence | None:
    """Return where `candidate` first leaves `reference`; stopping early or late counts as leaving."""
    for position, (expected, actual) in enumerate(zip_longest(reference, candidate)):
        if expected != actual:
            return Divergence(position=position, expected=expected, actual=actual)
    return None


def shared_length(one: Sequence[object], other: Sequence[object]) -> int:
    """Return how many places from the start agree: of ids, or of characters."""
    places = enumerate(zip(one, other, strict=False))
    return next((place for place, (here, there) in places if here != there), min(len(one), len(other)))


def partial_match(reference: Sequence[int], candidate: Sequence[int]) -> float:
    """Return the share of tokens before the first divergence, in [0, 1].

    The denominator is the longer of the two outputs, so a truncated output and one with a tail both score below 1.
    """
    divergence = first_divergence(reference, candidate)
    if divergence is None:
        return 1.0
    return divergence.position / max(len(reference), len(candidate))
