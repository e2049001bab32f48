"""What is kept of a step: ids, positions, what each query saw, what each slot held, the top logits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

UNKNOWN = -1
"""Content id of a slot whose fingerprint nobody wrote; column of a query whose own slot was not found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One token fed by one row: the event that fills a slot."""

    step: int
    """Target forward, counted from 0."""

    row: int
    """Row of the batch."""

    query: int
    """Place of the token in the row's block."""

    token: int
    """Token id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotParts:
    """What each layer holds in a slot whose bits, all layers together, nobody wrote."""

    keys: Mapping[int, frozenset[int]]
    """By layer the writes that made its keys; empty where nobody did."""

    values: Mapping[int, frozenset[int]]
    """The same for its values."""

    is_zero: bool
    """Whether all bits of some layer's keys or values are zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerView:
    """What the layers with one geometry saw in a step."""

    layers: tuple[int, ...]
    """Indices of the layers."""

    window: int | None
    """Most slots a query may see, itself included, or None for no limit."""

    width: int
    """Slots that attention received (n)."""

    mask_width: int | None
    """Columns of the mask that attention received, or None when it received none."""

    visible: np.ndarray
    """Whether a query's attention reaches a slot, bool [B, q, n]."""

    contents: np.ndarray
    """Content id of each slot, int64 [B, n]; `UNKNOWN` where no write explains the bits."""

    own_slots: np.ndarray
    """Column that holds each query's own keys and values, int64 [B, q]; `UNKNOWN` where it was not found."""

    parts: Mapping[tuple[int, int], SlotParts] = field(default_factory=dict)
    """Layer by layer, the visible slots that nobody wrote, by row and column; of each row the first few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One forward of the target."""

    index: int
    """Number of the step in the trace, counted from 0."""

    input_ids: np.ndarray | None
    """Token ids fed, int64 [B, q], or None when not seen."""

    position_ids: np.ndarray | None
    """Positions in effect, int64 [B, q], or None when not seen."""

    views: tuple[LayerView, ...]
    """What the layers saw, unwindowed and widest first."""

    top_ids: np.ndarray | None
    """The two most likely tokens after each query, int64 [B, q, 2]; -1 where logits were not computed."""

    top_logits: np.ndarray | None
    """Their logits, float64 [B, q, 2]; NaN where logits were not computed."""

    tied_ids: Mapping[tuple[int, int], tuple[int, ...]]
    """Every token that attains the maximum, by row and query, where there is more than one."""

    cache: int | None
    """Number of the cache written to, in order of first use in the trace, or None where none was."""

    is_complete: bool
    """Whether every attention layer ran; a draft of the target's own first layers runs fewer and is no target step."""

    obstacles: tuple[str, ...]
    """What should have been seen in this step and was not; empty when it was observed."""


@dataclass(slots=True, kw_only=True)
class Trace:
    """Everything recorded while a decoder ran."""

    steps: list[Step] = field(default_factory=list)
    """Steps in order."""

    writes: list[Write] = field(default_factory=list)
    """All writes in order."""

    writes_of: list[list[int]] = field(default_factory=list)
    """For each content id the indices of the writes that made these bits."""

    obstacles: list[str] = field(default_factory=list)
    """Why the target cannot be observed at all; empty when it can."""

    caveats: tuple[str, ...] = ()
    """What keeps the target's outputs from being certified, though all may be seen."""
