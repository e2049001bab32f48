"""Causes in positions: the slots are right, the position used is not their number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.records import CauseFinding
from specaudit.core.vocabulary import Cause

if TYPE_CHECKING:
    from specaudit.checks.scene import Scene, Scenery


def position_cause(scene: Scene, scenery: Scenery) -> CauseFinding | None:
    """Return what is wrong with the position of a scene's query, or None where it is right."""
    positions = scene.step.position_ids
    if positions is None or int(positions[scene.row, scene.query]) == scene.index:
        return None
    used = int(positions[scene.row, scene.query])
    cause, why = _cause(scene, scenery, used)
    return CauseFinding(
        cause=cause,
        step=scene.step.index,
        row=scene.row,
        query=scene.query,
        stream_index=scene.index,
        evidence=f"token {scene.index} of its stream was given position {used}: {why}",
    )


def _cause(scene: Scene, scenery: Scenery, used: int) -> tuple[Cause, str]:
    positions = scene.step.position_ids
    assert positions is not None  # noqa: S101 (the caller has looked)
    rows = len(positions)
    if rows > 1 and (positions == positions[0]).all():
        return Cause.POSITIONS_SHARED, f"all {rows} rows of the step have the same positions, from {positions[0, 0]} on"
    if scene.index == 0:
        return Cause.POSITION_OFFSET, f"the row begins {abs(used)} too {_side(used)}"
    off = _common_offset(scene, scenery)
    if off is not None:
        return Cause.POSITION_OFFSET, f"all that the row fed in the step stands {abs(off)} too {_side(off)}"
    before = _position_before(scene, scenery)
    if before is not None and used - before <= 0:
        return Cause.POSITION_DUPLICATE, f"token {scene.index - 1} before it has position {before}"
    if used < scene.index:
        return Cause.POSITION_DUPLICATE, f"token {used} has that position already"
    skipped = used - scene.index
    return Cause.POSITION_GAP, f"{skipped} position{'s are' if skipped > 1 else ' is'} left out before it"


def _common_offset(scene: Scene, scenery: Scenery) -> int | None:
    """Return by how much all positions of a row's block are off, or None where they are off by different numbers."""
    positions = scene.step.position_ids
    assert positions is not None  # noqa: S101 (the caller has looked)
    block = scenery.block(scene.step.index, scene.row) or {scene.query: scene.index}
    first = min(block)
    used = positions[scene.row, first:]
    off = int(used[0]) - block[first]
    return off if off and bool((used[1:] == used[:-1] + 1).all()) else None


def _side(off: int) -> str:
    return "late" if off > 0 else "early"


def _position_before(scene: Scene, scenery: Scenery) -> int | None:
    """Return the position of the token before a scene's, where it was fed in the same block."""
    positions = scene.step.position_ids
    block = scenery.block(scene.step.index, scene.row)
    query = next((query for query, index in block.items() if index == scene.index - 1), None)
    return None if query is None or positions is None else int(positions[scene.row, query])
