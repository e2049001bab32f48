"""RECT, the paper's invariant I1 (rectangular alignment), in any layout.

A row sees exactly its own stream: prompt, accepted and pending tokens, as counted from the ids that were fed, wherever
their slots lie; in a layer with a window, the last `window` of them. The mask covers every slot of the cache. Numbers alone
would miss a window that is full of the wrong slots, so slots whose bits are known to be none of the row's do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.records import Finding
from specaudit.core.vocabulary import Check

if TYPE_CHECKING:
    from specaudit.checks.streams import Attempt
    from specaudit.trace.records import LayerView, Step


def check_rect(step: Step, attempt: Attempt) -> Finding | None:
    """Return the first layer's finding where the fed token saw more or fewer slots than its stream has tokens."""
    length = attempt.stream_index + 1
    for view in step.views:
        finding = _mask_width(view, attempt) or _visible_slots(view, attempt, length)
        if finding is not None:
            return finding
    return _strangers(step.views[0], attempt, length)


def _mask_width(view: LayerView, attempt: Attempt) -> Finding | None:
    if view.mask_width is None or view.mask_width == 1 or view.mask_width >= view.width:
        return None  # one column is broadcast; columns past the cache are cut off by attention itself
    return _finding(
        attempt,
        view,
        expected=view.width,
        actual=view.mask_width,
        message=f"the mask has {view.mask_width} columns for {view.width} cache slots",
    )


def _visible_slots(view: LayerView, attempt: Attempt, length: int) -> Finding | None:
    expected = length if view.window is None else min(length, view.window)
    actual = int(view.visible[attempt.row, attempt.query].sum())
    if actual == expected:
        return None
    place = "" if view.window is None else f" in a window of {view.window}"
    return _finding(
        attempt,
        view,
        expected=expected,
        actual=actual,
        message=f"the row's stream has {expected} tokens{place}, attention sees {actual} slots",
    )


def _strangers(view: LayerView, attempt: Attempt, length: int) -> Finding | None:
    if not attempt.strangers:
        return None
    expected = length if view.window is None else min(length, view.window)
    return _finding(
        attempt,
        view,
        expected=expected,
        actual=expected - attempt.strangers,
        message=f"of {expected} slots that attention sees, {attempt.strangers} hold no token of the row's stream",
    )


def _finding(attempt: Attempt, view: LayerView, *, expected: int, actual: int, message: str) -> Finding:
    return Finding(
        check=Check.RECT,
        step=attempt.step,
        row=attempt.row,
        query=attempt.query,
        stream_index=attempt.stream_index,
        layer=view.layers[0],
        expected=expected,
        actual=actual,
        message=message,
    )
