"""From what was seen of a violated case to the evidence that is kept of it: the scene of its origin, and what led there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from specaudit.checks.causes.acceptance import CHOICES
from specaudit.checks.scene import Scene, Scenery, Slot, SlotKind
from specaudit.core.evidence import CaseEvidence, FedBlock, FedToken, Holding, Role, SlotRange
from specaudit.core.vocabulary import Check
from specaudit.trace.records import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.checks.streams import Stream
    from specaudit.core.records import CauseFinding, Finding
    from specaudit.trace.records import Step, Trace
    from specaudit.trace.trie import PrefixTrie

STEPS_BEFORE = 3
"""Most blocks kept of those that the stream's rows fed before the origin."""

TOKENS_KEPT = 24
"""Most tokens kept of a block: those around the origin, of earlier blocks the last."""

HOLDING = {
    SlotKind.TOKEN: Holding.TOKEN,
    SlotKind.DRAFT: Holding.DRAFT,
    SlotKind.PADDING: Holding.PADDING,
    SlotKind.FOREIGN: Holding.FOREIGN,
    SlotKind.STRANGE: Holding.UNWRITTEN,
}


def case_evidence(
    case_id: str,
    trace: Trace,
    trie: PrefixTrie,
    stream: Stream,
    findings: Sequence[Finding],
    causes: Sequence[CauseFinding],
) -> CaseEvidence | None:
    """Return the evidence of a violated case, without texts, or None where no step shows it."""
    scene = _origin(Scenery(trace, trie, stream), findings, causes)
    if scene is None:
        return None
    blocks = _Blocks(trace, Scenery(trace, trie, stream), stream)
    step = scene.step.index
    following = scene.index + 1
    is_in_stream = scene.index >= stream.prompt_length - 1 and following < len(stream.tokens)
    return CaseEvidence(
        case_id=case_id,
        step=step,
        row=scene.row,
        query=scene.query,
        stream_index=scene.index,
        layers=scene.view.layers,
        window=scene.view.window,
        expected_from=scene.expected.start,
        missing=scene.missing,
        slots=tuple(_ranges(scene)),
        blocks=(
            *(blocks.block(*place) for place in blocks.places_before(step)[-STEPS_BEFORE:]),
            blocks.block(step, scene.row, around=scene.query),
        ),
        output_id=stream.tokens[following] if is_in_stream else None,
        token_texts={},
    )


def _origin(scenery: Scenery, findings: Sequence[Finding], causes: Sequence[CauseFinding]) -> Scene | None:
    """Return the scene of the first cause that a step shows, or else of the first finding."""
    cause = next((cause for cause in causes if cause.step is not None), None)
    finding = next(iter(findings), None)
    if cause is not None:
        step, row, query, layer, index = cause.step, cause.row, cause.query, cause.layer, cause.stream_index
        is_choice = cause.cause in CHOICES
    elif finding is not None:
        step, row, query, layer, index = finding.step, finding.row, finding.query, finding.layer, finding.stream_index
        is_choice = finding.check is Check.WARRANT
    else:
        return None
    if step is None or row is None or query is None or not scenery.trace.steps[step].views:
        return None
    fed = None if index is None else index - is_choice
    known = scenery.index_at(step, row, query)
    return scenery.scene(step, row, query, layer=layer, index=fed if known is None else known)


# Slots


def _ranges(scene: Scene) -> list[SlotRange]:
    """Return all columns of a scene's row, neighbours alike taken together."""
    due = _due_columns(scene)
    ranges: list[SlotRange] = []
    for one in sorted(
        [*(_range(slot, due) for slot in scene.slots), *_itself(scene)], key=lambda one: one.first_column
    ):
        last = ranges[-1] if ranges else None
        if last is not None and _follows(last, one):
            ranges[-1] = _joined(last, one)
        else:
            ranges.append(one)
    return ranges


def _due_columns(scene: Scene) -> set[int]:
    """Return the columns that the query should see: for each expected token a visible slot, else a hidden one."""
    due: dict[int, int] = {}
    for slots in (scene.visible, scene.slots):
        for slot in slots:
            if slot.kind is SlotKind.TOKEN and slot.index is not None and slot.index in scene.expected:
                due.setdefault(slot.index, slot.column)
    return set(due.values())


def _range(slot: Slot, due: set[int]) -> SlotRange:
    write = slot.write
    return SlotRange(
        first_column=slot.column,
        columns=1,
        holding=HOLDING[slot.kind],
        is_visible=slot.is_visible,
        is_due=slot.column in due,
        stream_index=slot.index if slot.kind in {SlotKind.TOKEN, SlotKind.DRAFT} else None,
        row=write.row if slot.kind is SlotKind.FOREIGN and write is not None else None,
        steps=() if write is None else (write.step,),
        token_ids=() if write is None else (write.token,),
    )


def _itself(scene: Scene) -> list[SlotRange]:
    own = int(scene.view.own_slots[scene.row, scene.query])
    ids = scene.step.input_ids
    if own == UNKNOWN or ids is None:
        return []
    return [
        SlotRange(
            first_column=own,
            columns=1,
            holding=Holding.ITSELF,
            is_visible=bool(scene.view.visible[scene.row, scene.query, own]),
            is_due=True,
            stream_index=scene.index,
            row=None,
            steps=(scene.step.index,),
            token_ids=(int(ids[scene.row, scene.query]),),
        )
    ]


def _follows(before: SlotRange, after: SlotRange) -> bool:
    """Return whether a column says the same as the range before it, of the next token."""
    names = ("holding", "is_visible", "is_due", "row")
    if any(getattr(before, name) != getattr(after, name) for name in names):
        return False
    if before.stream_index is None or after.stream_index is None:
        return before.stream_index == after.stream_index
    return after.stream_index == before.stream_index + before.columns


def _joined(before: SlotRange, after: SlotRange) -> SlotRange:
    return SlotRange(
        first_column=before.first_column,
        columns=before.columns + after.columns,
        holding=before.holding,
        is_visible=before.is_visible,
        is_due=before.is_due,
        stream_index=before.stream_index,
        row=before.row,
        steps=before.steps + after.steps,
        token_ids=before.token_ids + after.token_ids,
    )


# Blocks


class _Blocks:
    """What the rows of one stream fed."""

    def __init__(self, trace: Trace, scenery: Scenery, stream: Stream) -> None:
        self.trace = trace
        self.scenery = scenery
        self.stream = stream

    def places_before(self, step: int) -> list[tuple[int, int]]:
        """Return the steps and rows that fed tokens of the stream before a step, in order."""
        attempts = (attempt for of_token in self.stream.attempts for attempt in of_token)
        return sorted({(attempt.step, attempt.row) for attempt in attempts if attempt.step < step})

    def block(self, step: int, row: int, *, around: int | None = None) -> FedBlock:
        """Return what a row fed in a step but padding, the tokens near query `around` or else the last ones."""
        of_step = self.trace.steps[step]
        assert of_step.input_ids is not None  # noqa: S101 (steps without ids have no findings)
        indices, decided = self.scenery.block(step, row), self._decided_before(step)
        roles = [_role(of_step, row, query, indices, decided) for query in range(of_step.input_ids.shape[1])]
        queries = [query for query, role in enumerate(roles) if role is not Role.PADDING or query == around]
        middle = len(queries) if around is None else queries.index(around)
        last = min(len(queries), max(middle + TOKENS_KEPT // 2, TOKENS_KEPT))
        first = max(0, last - TOKENS_KEPT)
        return FedBlock(
            step=step,
            row=row,
            width=len(roles),
            tokens_before=first,
            tokens=tuple(
                _token(of_step, row, query, roles[query], indices.get(query)) for query in queries[first:last]
            ),
        )

    def _decided_before(self, step: int) -> int:
        """Return the index of the last token that was decided before a step: the target had read all before it."""
        attempts = (attempt for of_token in self.stream.attempts for attempt in of_token)
        read = max((attempt.stream_index for attempt in attempts if attempt.step < step), default=-1)
        return max(self.stream.prompt_length - 1, read + 1)


def _token(step: Step, row: int, query: int, role: Role, index: int | None) -> FedToken:
    assert step.input_ids is not None  # noqa: S101 (steps without ids have no findings)
    top_ids, top_logits = _top(step, row, query)
    return FedToken(
        query=query,
        token_id=int(step.input_ids[row, query]),
        role=role,
        stream_index=index,
        position=None if step.position_ids is None else int(step.position_ids[row, query]),
        top_ids=top_ids,
        top_logits=top_logits,
    )


def _role(step: Step, row: int, query: int, indices: dict[int, int], decided: int) -> Role:
    index = indices.get(query)
    if index is not None:
        return Role.DECIDED if index <= decided else Role.ACCEPTED
    own = [int(view.own_slots[row, query]) for view in step.views]
    sees_itself = any(
        column != UNKNOWN and view.visible[row, query, column] for view, column in zip(step.views, own, strict=True)
    )
    if not sees_itself or (indices and query < min(indices)):
        return Role.PADDING
    return Role.REJECTED if indices else Role.OTHER


def _top(step: Step, row: int, query: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the two most likely tokens after a query and their logits; those that are not numbers are left out."""
    if step.top_ids is None or step.top_logits is None:
        return (), ()
    ids, logits = step.top_ids[row, query], step.top_logits[row, query]
    known = [place for place in range(len(ids)) if ids[place] != UNKNOWN and np.isfinite(logits[place])]
    return tuple(int(ids[place]) for place in known), tuple(round(float(logits[place]), 4) for place in known)
