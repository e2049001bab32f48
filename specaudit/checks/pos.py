"""POS, the paper's invariant I2 (position-ID contiguity), in any layout.

The position that a token is given, as the model's position module used it, is the number of its row's own tokens before
it. A constant offset changes nothing in exact arithmetic on a model with rotary positions; it is reported all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.records import Finding
from specaudit.core.vocabulary import Check

if TYPE_CHECKING:
    from specaudit.checks.streams import Attempt
    from specaudit.trace.records import Step


def check_pos(step: Step, attempt: Attempt) -> Finding | None:
    """Return a finding where the fed token was given another position than its place in the stream."""
    if step.position_ids is None:
        return None  # such a step is not observed
    actual = int(step.position_ids[attempt.row, attempt.query])
    if actual == attempt.stream_index:
        return None
    return Finding(
        check=Check.POS,
        step=attempt.step,
        row=attempt.row,
        query=attempt.query,
        stream_index=attempt.stream_index,
        layer=None,
        expected=attempt.stream_index,
        actual=actual,
        message=f"token {attempt.stream_index} of the row's stream was given position {actual}",
    )
