"""Evidence of violated cases: all of the row's cache, what should be seen of it, and the way there."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from random import Random
from typing import TYPE_CHECKING

import pytest
import torch

from specaudit.checks.evidence import STEPS_BEFORE, TOKENS_KEPT, case_evidence
from specaudit.core.evidence import CaseEvidence, Holding, Role, read_evidence, token_ids_of
from specaudit.core.vocabulary import Sync
from specaudit.trace.growth import grow
from tests.checks.batches import Audited, RandomBatch, audit, random_batch
from tests.checks.faulty import Broken, Forward

if TYPE_CHECKING:
    from torch import Tensor

AT, ROW = 3, 1
BATCH = RandomBatch(
    architecture="llama",
    vocabulary=64,
    prompts=((5, 9, 11, 14, 3, 8), (7, 30, 2), (12, 9, 33, 50)),
    max_new_tokens=14,
    draft_tokens=3,
    eos=63,
    pad=1,
    draft="stress:0.5",
)


def evidence_of(audited: Audited) -> list[CaseEvidence | None]:
    """Return the evidence of each case that is violated, in order, and None for the others."""
    trie = grow(audited.trace)
    return [
        case_evidence(f"case {row}", audited.trace, trie, stream, judgement.findings, judgement.causes)
        if judgement.sync is Sync.VIOLATED
        else None
        for row, (stream, judgement) in enumerate(zip(audited.streams, audited.judgements, strict=True))
    ]


def without_positions(forward: Forward) -> None:
    forward.position_ids = None


def rejected_shown(step: int, mask: Tensor) -> Tensor:
    if step == AT:
        mask = mask.clone()
        mask[ROW] = 1
    return mask


def one_too_many_kept(step: int, kept: list[int]) -> list[int]:
    return [count + (row == ROW and step == AT) for row, count in enumerate(kept)]


def zeroed(forward: Forward) -> None:
    if forward.step == AT:
        layer = forward.cache.cache.layers[1]
        layer.keys = layer.keys.clone()
        layer.keys[ROW, :, -2] = 0


FAULTS = {
    "without positions": lambda: Broken(forward=without_positions),
    "rejected and padding shown": lambda: Broken(hide=rejected_shown, in_place=True),
    "one too many kept": lambda: Broken(keep=one_too_many_kept),
    "zeroed": lambda: Broken(forward=zeroed),
}


@pytest.mark.parametrize("architecture", ["llama", "mistral", "gemma3"])
@pytest.mark.parametrize("fault", FAULTS)
def test_evidence_is_whole_and_survives_its_file(fault: str, architecture: str) -> None:
    audited = audit(FAULTS[fault]().decode, replace(BATCH, architecture=architecture, draft="stress:1"))
    found = [evidence for evidence in evidence_of(audited) if evidence is not None]
    assert found
    for evidence in found:
        check_whole(evidence, audited)


def check_whole(evidence: CaseEvidence, audited: Audited) -> None:
    """Require what holds of any evidence."""
    step = audited.trace.steps[evidence.step]
    view = next(view for view in step.views if view.layers == evidence.layers)
    columns = [
        column for slots in evidence.slots for column in range(slots.first_column, slots.first_column + slots.columns)
    ]
    assert columns == list(range(view.width))
    visible = [slots.is_visible for slots in evidence.slots for _ in range(slots.columns)]
    assert visible == view.visible[evidence.row, evidence.query].tolist()
    due = sum(slots.columns for slots in evidence.slots if slots.is_due and slots.holding is Holding.TOKEN)
    assert due <= evidence.stream_index - evidence.expected_from
    for slots in evidence.slots:
        is_written = slots.holding is not Holding.UNWRITTEN
        assert len(slots.token_ids) == len(slots.steps) == slots.columns * is_written
    assert 1 <= len(evidence.blocks) <= STEPS_BEFORE + 1
    assert (evidence.blocks[-1].step, evidence.blocks[-1].row) == (evidence.step, evidence.row)
    assert all(len(block.tokens) <= TOKENS_KEPT for block in evidence.blocks)
    assert evidence.query in [token.query for token in evidence.blocks[-1].tokens]
    texts = {token: f"<{token}>" for token in token_ids_of(evidence)}
    evidence = replace(evidence, token_texts=texts)
    assert read_evidence(json.loads(json.dumps(asdict(evidence)))) == evidence


def test_evidence_of_random_batches_is_whole() -> None:
    checked = 0
    for seed in range(40):
        random = Random(seed)
        fault = random.choice(list(FAULTS.values()))()
        batch = random_batch(random, random.choice(["llama", "gpt2", "mistral"]))
        batch = replace(batch, draft="stress:1", prompts=(batch.prompts * 2)[: max(2, len(batch.prompts))])
        audited = audit(fault.decode, batch)
        for evidence in evidence_of(audited):
            if evidence is not None:
                check_whole(evidence, audited)
                checked += 1
    assert checked > 20


def test_a_rejected_slot_that_is_seen_stands_out() -> None:
    audited = audit(FAULTS["rejected and padding shown"]().decode, replace(BATCH, draft="stress:1"))
    evidence = evidence_of(audited)[ROW]
    assert evidence is not None
    wrong = {slots.holding for slots in evidence.slots if slots.is_visible and not slots.is_due}
    assert wrong == {Holding.PADDING, Holding.DRAFT}
    assert all(slots.is_visible for slots in evidence.slots if slots.is_due)
    assert evidence.missing == ()
    roles = [token.role for token in evidence.blocks[-1].tokens]
    assert roles == [Role.DECIDED, Role.REJECTED, Role.REJECTED, Role.REJECTED]
    assert all(token.top_ids for token in evidence.blocks[-1].tokens)


def test_what_the_output_goes_on_with() -> None:
    audited = audit(Broken(forward=without_positions).decode, BATCH)
    evidence = evidence_of(audited)[ROW]
    assert evidence is not None
    assert (evidence.step, evidence.stream_index, evidence.output_id) == (0, 0, None)  # a prompt token
    with torch.no_grad():
        later = audit(FAULTS["rejected and padding shown"]().decode, BATCH)
    evidence = evidence_of(later)[ROW]
    assert evidence is not None
    assert evidence.output_id == later.streams[ROW].tokens[evidence.stream_index + 1]
