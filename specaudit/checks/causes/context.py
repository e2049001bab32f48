"""Causes in what attention saw: masks and cache contents, from the slots of one query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.checks.scene import Scene, Scenery, Slot, SlotKind
from specaudit.core.records import CauseFinding
from specaudit.core.vocabulary import Cause
from specaudit.trace.records import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence


def context_cause(scene: Scene, scenery: Scenery) -> CauseFinding | None:
    """Return what is wrong with the slots that a scene's query saw, or None where they are right."""
    for search in (_strange, _apart, _foreign, _beside, _padding, _draft, _missing, _self_hidden, _repeated):
        found = search(scene, scenery)
        if found is not None:
            return found
    return None


def _found(
    scene: Scene, cause: Cause, evidence: str, *, slot: int | None = None, layer: int | None = None
) -> CauseFinding:
    return CauseFinding(
        cause=cause,
        step=scene.step.index,
        row=scene.row,
        query=scene.query,
        stream_index=scene.index,
        layer=scene.view.layers[0] if layer is None else layer,
        slot=slot,
        evidence=evidence,
    )


def _seen(scene: Scene, kind: SlotKind) -> list[Slot]:
    return [slot for slot in scene.visible if slot.kind is kind]


def _strange(scene: Scene, scenery: Scenery) -> CauseFinding | None:
    slots = _seen(scene, SlotKind.STRANGE)
    if not slots:
        return None
    slot = next((slot for slot in slots if slot.parts is not None), slots[0])
    if slot.parts is None or slot.parts.is_zero:
        what = "bits that no forward wrote" if slot.parts is None else "zeros"
        return _found(scene, Cause.UNWRITTEN_KV, f"slot {slot.column} holds {what}", slot=slot.column)
    return _strange_in_layers(scene, scenery, slot)


def _strange_in_layers(scene: Scene, scenery: Scenery, slot: Slot) -> CauseFinding:
    """Tell bits that nobody wrote from bits that were written, but not together."""
    parts = slot.parts
    assert parts is not None  # noqa: S101 (the caller has looked)
    unwritten = [layer for layer in parts.keys if not (parts.keys[layer] and parts.values[layer])]
    if unwritten:
        halves = [name for name, made in (("keys", parts.keys), ("values", parts.values)) if not made[unwritten[0]]]
        evidence = (
            f"slot {slot.column} holds {' and '.join(halves)} that no forward wrote, from layer {unwritten[0]} on"
        )
        return _found(scene, Cause.UNWRITTEN_KV, evidence, slot=slot.column, layer=unwritten[0])
    labels = {layer: scenery.label_of_writes(parts.keys[layer]) for layer in parts.keys}
    torn = [layer for layer in parts.keys if not parts.keys[layer] & parts.values[layer]]
    if len(torn) == len(parts.keys):
        return _torn(scene, scenery, slot)
    first = torn[0] if torn else _first_other([parts.keys[layer] for layer in labels], list(labels))
    evidence = f"slot {slot.column} does not hold the same token in every layer: layer {first} parts from the others"
    return _found(scene, Cause.LAYER_MISMATCH, evidence, slot=slot.column, layer=first)


def _first_other(writes: Sequence[frozenset[int]], layers: Sequence[int]) -> int:
    """Return the first layer whose writes are not those of most layers."""
    most = max(writes, key=lambda one: sum(bool(one & other) for other in writes))
    return next((layer for layer, one in zip(layers, writes, strict=True) if not one & most), layers[0])


def _torn(scene: Scene, scenery: Scenery, slot: Slot) -> CauseFinding:
    """Name keys and values that belong to two tokens, in every layer: of another row, or of the same."""
    parts = slot.parts
    assert parts is not None  # noqa: S101 (the caller has looked)
    layer = min(parts.keys)
    labels = [scenery.label_of_writes(made[layer]) for made in (parts.keys, parts.values)]
    names = [_named(kind, index) for kind, index, _ in labels]
    is_foreign = any(kind is SlotKind.FOREIGN for kind, _, _ in labels)
    cause = Cause.FOREIGN_KV if is_foreign else Cause.LAYER_MISMATCH
    evidence = f"slot {slot.column} holds the keys of {names[0]} and the values of {names[1]}"
    return _found(scene, cause, evidence, slot=slot.column, layer=layer)


def _named(kind: SlotKind, index: int | None) -> str:
    if kind is SlotKind.TOKEN:
        return f"token {index} of the stream"
    if kind is SlotKind.DRAFT:
        return f"a draft for token {index}"
    return str(kind.value)


def _apart(scene: Scene, scenery: Scenery) -> CauseFinding | None:
    """Name a slot that holds another token in the layers of another geometry."""
    for view in scene.step.views:
        if view is scene.view or view.width != scene.view.width:
            continue
        for slot in scene.visible:
            kind, index, _ = scenery.label(int(view.contents[scene.row, slot.column]))
            if (
                slot.kind is not SlotKind.STRANGE
                and SlotKind.STRANGE is not kind
                and (kind, index) != (slot.kind, slot.index)
            ):
                here, there = _named(slot.kind, slot.index), _named(kind, index)
                layers = (scene.view.layers[0], view.layers[0])
                evidence = f"slot {slot.column} holds {here} in layer {layers[0]} and {there} in layer {layers[1]}"
                return _found(scene, Cause.LAYER_MISMATCH, evidence, slot=slot.column)
    return None


def _foreign(scene: Scene, scenery: Scenery) -> CauseFinding | None:
    slots = _seen(scene, SlotKind.FOREIGN)
    if not slots:
        return None
    slot, write = slots[0], slots[0].write
    assert write is not None  # noqa: S101 (foreign slots were written)
    evidence = (
        f"{_counted(slots)} that another row wrote, the first one slot {slot.column}: token id {write.token}, "
        f"fed by row {write.row} in step {write.step}"
    )
    return _found(scene, Cause.FOREIGN_KV, evidence, slot=slot.column)


def _beside(scene: Scene, scenery: Scenery) -> CauseFinding | None:
    """Name what is seen in front of a row that is whole: the place of padding, whatever was left there."""
    count = len(scene.expected)
    extra = len(scene.visible) - count
    if not count or extra <= 0 or [slot.index for slot in scene.visible[extra:]] != list(scene.expected):
        return None
    if any(slot.kind is not SlotKind.TOKEN for slot in scene.visible[extra:]):
        return None
    slots = scene.visible[:extra]
    evidence = f"{_counted(slots)} in front of the row's first token, where padding stands, the first one slot "
    return _found(scene, Cause.PAD_ATTENDED, f"{evidence}{slots[0].column}", slot=slots[0].column)


def _padding(scene: Scene, scenery: Scenery) -> CauseFinding | None:
    slots = _seen(scene, SlotKind.PADDING)
    if not slots:
        return None
    evidence = f"{_counted(slots)} of padding, the first one slot {slots[0].column}"
    gone = _gone(scene)
    if gone:
        return _found(scene, Cause.SHIFTED_KV, f"{_lost(scene)}, and it sees {evidence}")
    return _found(scene, Cause.PAD_ATTENDED, evidence, slot=slots[0].column)


def _draft(scene: Scene, scenery: Scenery) -> CauseFinding | None:
    slots = _seen(scene, SlotKind.DRAFT)
    if not slots:
        return None
    slot, write = slots[0], slots[0].write
    assert write is not None  # noqa: S101 (drafts were written)
    what = f"a rejected draft, id {write.token} for token {slot.index}, fed in step {write.step}"
    if _is_moved(scene, scenery, slot):
        return _found(scene, Cause.SHIFTED_KV, f"{_lost(scene)}, and slot {slot.column} holds {what}")
    cause = Cause.REJECTED_ATTENDED if not scene.missing and _has_holes(scene, scenery) else Cause.STALE_KV
    return _found(scene, cause, f"slot {slot.column} holds {what}", slot=slot.column)


def _is_moved(scene: Scene, scenery: Scenery, draft: Slot) -> bool:
    """Return whether a visible draft is the neighbour of where a row's slots should lie, rather than kept in one's place.

    Then as many slots are seen as should be, and one is missing that the draft does not stand for: gone, or out of sight
    where masks hide nothing but padding.
    """
    if len(scene.visible) != len(scene.expected) or not scene.missing or draft.index in scene.missing:
        return False
    return bool(_gone(scene)) or not _has_holes(scene, scenery)


def _has_holes(scene: Scene, scenery: Scenery) -> bool:
    """Return whether rejected slots stay in this cache and are masked, rather than cut or overwritten.

    Then some row has a slot that a token wrote, and that it does not see, between slots that it sees.
    """
    view, trie = scene.view, scenery.trie
    for row in range(len(view.contents)):
        seen = view.visible[row].any(0)
        own = [int(column) for column in view.own_slots[row] if column != UNKNOWN]
        columns = seen.nonzero()[0]
        if not own or not len(columns):
            continue
        for column in range(int(columns[0]), min(own)):
            content = int(view.contents[row, column])
            if not seen[column] and content != UNKNOWN and trie.nodes_of_content[content]:
                return True
    return False


def _gone(scene: Scene) -> list[int]:
    """Return the stream indices that no slot of the row holds any more, where as many slots are seen as should be."""
    if len(scene.visible) != len(scene.expected):
        return []
    held = {slot.index for slot in scene.slots if slot.kind is SlotKind.TOKEN}
    return [index for index in scene.missing if index not in held]


def _lost(scene: Scene) -> str:
    gone = _gone(scene)
    if not gone:
        return f"token {scene.missing[0]} of the stream lies out of sight"
    return f"no slot of the row holds token {gone[0]} of the stream any more"


def _missing(scene: Scene, scenery: Scenery) -> CauseFinding | None:
    if not scene.missing:
        return None
    index = scene.missing[0]
    hidden = next((slot for slot in scene.slots if slot.kind is SlotKind.TOKEN and slot.index == index), None)
    if hidden is not None:
        evidence = f"token {index} of the stream lies in slot {hidden.column}, which the mask hides"
        return _found(scene, Cause.LIVE_SLOT_MASKED, evidence, slot=hidden.column)
    evidence = f"no slot of the row holds token {index} of the stream any more"
    return _found(scene, Cause.SHIFTED_KV, evidence)


def _self_hidden(scene: Scene, scenery: Scenery) -> CauseFinding | None:
    own = int(scene.view.own_slots[scene.row, scene.query])
    if own == UNKNOWN or scene.view.visible[scene.row, scene.query, own]:
        return None
    evidence = f"the token does not see its own slot {own}, which the mask hides"
    return _found(scene, Cause.LIVE_SLOT_MASKED, evidence, slot=own)


def _repeated(scene: Scene, scenery: Scenery) -> CauseFinding | None:
    seen: dict[int | None, Slot] = {}
    for slot in _seen(scene, SlotKind.TOKEN):
        first = seen.setdefault(slot.index, slot)
        if first is not slot or slot.index not in scene.expected:
            evidence = f"slot {slot.column} holds token {slot.index} of the stream, which has no place there"
            return _found(scene, Cause.STALE_KV, evidence, slot=slot.column)
    return None


def _counted(slots: Sequence[Slot]) -> str:
    return "1 visible slot" if len(slots) == 1 else f"{len(slots)} visible slots"
