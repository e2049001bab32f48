"""Where a fault means nothing, and why: every other cell of the table architecture x layout x fault is tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.faults.fault import Group, Layout
from specaudit.faults.sight import has_windows

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from specaudit.faults.fault import Fault

STATIC_WINDOW = "a static cache drops what leaves a window: the decoder refuses such a model"
COUNTED = "the model takes no position IDs and counts the mask instead: harmless"


def counts_positions(model: PreTrainedModel) -> bool:
    """Return whether a model works its positions out from the attention mask when none are passed (OPT)."""
    return any("LearnedPositionalEmbedding" in type(module).__name__ for module in model.modules())


def inapplicable(fault: Fault, layout: Layout, model: PreTrainedModel) -> str | None:
    """Return why a fault cannot be made, or does no harm, in a layout on a model; None where it should be caught."""
    if layout not in fault.layouts:
        return _other_layouts(fault)
    if layout is Layout.STATIC and has_windows(model):
        return STATIC_WINDOW
    if fault.name in {"no-positions", "rounds-without-positions"} and counts_positions(model):
        return COUNTED
    return None


def _other_layouts(fault: Fault) -> str:
    if fault.layouts == (Layout.CONTIGUOUS,):
        return "no slot is cut or moved in this layout"
    if fault.is_compacting:
        return "slots are moved together in the layout with holes alone"
    if fault.group is Group.MASKS:
        return "no rejected slot is left to be masked in this layout"
    return "rows are not refilled in this layout"
