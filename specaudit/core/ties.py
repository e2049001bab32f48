"""How many ties rounding explains: an arm that differs far more often than its controls does not differ by rounding.

A decoder may take a token that is nearly as good as the target's choice wherever there is one. Each of its differences lies
within the noise floor; that there are so many does not.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

from specaudit.core.vocabulary import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.core.records import CaseResult
    from specaudit.core.scores import Control

LEAST_CHANCE = 0.001
"""Chance below which a sound arm is not believed to have as many ties as it has. A run has a few arms with ties at most."""


def crowded_ties(cases: Sequence[CaseResult], controls: Sequence[Control]) -> str | None:
    """Return what to say of the first arm with more ties than its controls make plausible, or None for no such arm."""
    floors = {(one.batch_size, one.draft_tokens): one.floor for one in controls if one.floor is not None}
    arms: dict[tuple[object, ...], list[CaseResult]] = {}
    for case in cases:
        if case.verdict is not Verdict.UNMEASURED:
            arms.setdefault((case.decoder, case.batch_size, case.draft_tokens, case.seed), []).append(case)
    for of_arm in arms.values():
        ties = sum(case.verdict is Verdict.TIE for case in of_arm)
        floor = floors.get((of_arm[0].batch_size or 1, of_arm[0].draft_tokens or 1))
        if not ties or floor is None:
            continue
        if chance_of_as_many(ties, len(of_arm), floor.departing, floor.outputs) < LEAST_CHANCE:
            return (
                f"{of_arm[0].decoder} at batch {of_arm[0].batch_size}: {ties} of {len(of_arm)} cases differ, "
                f"{floor.departing} of {floor.outputs} control outputs; that is no rounding"
            )
    return None


def chance_of_as_many(count: int, total: int, other_count: int, other_total: int) -> float:
    """Return the chance that of two samples with one rate the first has `count` or more of `total`, given their sum.

    Fisher's exact test, one-sided: the hypergeometric tail.
    """
    hits, size = count + other_count, total + other_total
    most = min(hits, total)
    ways = sum(comb(hits, one) * comb(size - hits, total - one) for one in range(count, most + 1))
    return ways / comb(size, total)
