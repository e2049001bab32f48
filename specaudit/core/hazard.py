"""The hazard: how likely the next token is the first wrong one.

Exact match depends on the length: a hazard of 0.1 % a token leaves 95 % of outputs exact after 50 tokens, 88 % after
128. The hazard itself does not, so it is what runs of different lengths are compared by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.shares import share

if TYPE_CHECKING:
    from collections.abc import Iterable

    from specaudit.core.records import CaseResult
    from specaudit.core.shares import Share


def hazard(cases: Iterable[CaseResult]) -> Share | None:
    """Return divergences among tokens at risk, or None where no token was.

    An output is at risk from its first token up to the one that parts from the reference, that one included; one that
    never parts is censored where it ends, at EOS or the budget. Unmeasured outputs and those compared as text have no
    tokens. The interval takes tokens as independent trials, as no token counts after a divergence.
    """
    divergences = at_risk = 0
    for case in cases:
        if case.output_ids is None:
            continue
        if case.first_divergence is None:
            at_risk += len(case.output_ids)
        else:
            divergences += 1
            at_risk += case.first_divergence.position + 1
    return share(divergences, at_risk) if at_risk else None
