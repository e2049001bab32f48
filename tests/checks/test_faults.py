"""Single faults, injected into a correct decoder at a known round: found by the right check, at the right place.

Step 0 is the prefill, step n the n-th round; the pending token of a row with n tokens has stream index n - 1.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version

import pytest
import torch

from specaudit.batch.padding import following_positions
from specaudit.core.vocabulary import Check, Sync
from specaudit.faults.legal import last_token_again, rectangle
from tests.checks.batches import RandomBatch, audit
from tests.checks.faulty import Broken, Forward

IS_BEFORE_5 = int(version("transformers").split(".")[0]) < 5
AT, ROW, PADDING = 3, 1, 3
"""Round and row of most faults; padding in front of that row."""
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
ALL_REJECTED = replace(BATCH, draft="stress:1")
ALL_ACCEPTED = replace(BATCH, draft="stress:0")


def assert_found(
    broken: Broken,
    batch: RandomBatch,
    check: Check,
    *,
    step: int = AT,
    row: int = ROW,
    query: int = 0,
    expected: int | None = None,
    actual: int | None = None,
    **more: int,
) -> None:
    """Require the first finding of `row`; by default the invariant demands the place of the pending token."""
    result = audit(broken.decode, batch)
    judgement = result.judgements[row]
    assert judgement.sync is Sync.VIOLATED, judgement
    finding = judgement.findings[0]
    assert (finding.check, finding.step, finding.row, finding.query) == (check, step, row, query), finding
    if expected is None:
        index = broken.rounds[step - 1].lengths[row] - 1 + query
        expected = index + 1 if check is Check.RECT else index
    assert finding.expected == expected, finding
    if actual is None:
        actual = expected + more.get("by", 0)
    assert finding.actual == actual, finding
    if "layer" in more:
        assert finding.layer == more["layer"], finding
    for other, judged in enumerate(result.judgements):
        assert other == row or more.get("all_rows") or judged.sync is Sync.CERTIFIED, (other, judged)


def shifted(forward: Forward, row: int, by: int) -> None:
    forward.position_ids = forward.position_ids.clone()
    forward.position_ids[row] += by


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "opt", "mistral", "gemma3", "gpt_neox"])
@pytest.mark.parametrize("is_lasting", [True, False])
def test_position_offset_of_a_row(architecture: str, is_lasting: bool) -> None:
    def alter(forward: Forward) -> None:
        if forward.step == AT or (is_lasting and forward.step > AT):
            shifted(forward, ROW, 2)

    assert_found(Broken(forward=alter), replace(BATCH, architecture=architecture), Check.POS, by=2)


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_no_positions_with_left_padding(architecture: str) -> None:
    def alter(forward: Forward) -> None:
        forward.position_ids = None

    batch = replace(BATCH, architecture=architecture)
    assert_found(
        Broken(forward=alter), batch, Check.POS, step=0, query=PADDING, expected=0, actual=PADDING, all_rows=True
    )


def test_no_positions_where_the_model_counts_them_in_the_mask() -> None:
    def alter(forward: Forward) -> None:
        forward.position_ids = None

    result = audit(Broken(forward=alter).decode, replace(BATCH, architecture="opt"))
    assert result.outputs == result.expected
    assert {judgement.sync for judgement in result.judgements} == {Sync.CERTIFIED}


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_no_positions_after_a_rollback(architecture: str) -> None:
    """The model counts cache slots, rejected ones too."""

    def alter(forward: Forward) -> None:
        if forward.step >= AT:
            forward.position_ids = None

    broken = Broken(forward=alter, in_place=True)
    batch = replace(ALL_REJECTED, architecture=architecture)
    width = max(map(len, batch.prompts)) + (AT - 1) * (batch.draft_tokens + 1)
    assert_found(broken, batch, Check.POS, actual=width, all_rows=True)


def test_one_offset_for_all_rows() -> None:
    def alter(forward: Forward) -> None:
        if forward.step >= AT:
            forward.position_ids = forward.position_ids.max(0, keepdim=True).values.expand(3, -1)

    broken = Broken(forward=alter)
    audit(broken.decode, BATCH)
    longest = max(broken.rounds[AT - 1].lengths) - 1
    assert_found(Broken(forward=alter, rounds=[]), BATCH, Check.POS, actual=longest, all_rows=True)


def test_gap_after_a_rejected_tail() -> None:
    broken = Broken()

    def alter(forward: Forward) -> None:
        if forward.step >= AT:
            shifted(forward, ROW, broken.rounds[forward.step - 1].rejected[ROW])

    broken.forward = alter
    assert_found(broken, ALL_REJECTED, Check.POS, by=ALL_REJECTED.draft_tokens)


def test_duplicate_position() -> None:
    def alter(forward: Forward) -> None:
        if forward.step == AT:
            forward.position_ids = forward.position_ids.clone()
            forward.position_ids[ROW, 1:] -= 1

    assert_found(Broken(forward=alter), ALL_ACCEPTED, Check.POS, query=1, by=-1)


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gemma3", "mistral"])
def test_padding_attended(architecture: str) -> None:
    def alter(forward: Forward) -> None:
        if forward.step == 0:
            forward.attention_mask = None

    broken, batch = Broken(forward=alter), replace(BATCH, architecture=architecture)
    assert_found(broken, batch, Check.RECT, step=0, query=PADDING, expected=1, actual=PADDING + 1, all_rows=True)


def test_padding_attended_from_a_round_on() -> None:
    def alter(forward: Forward) -> None:
        if forward.step >= AT:
            forward.attention_mask = torch.ones_like(forward.attention_mask)

    broken = Broken(forward=alter, in_place=True)
    batch = replace(ALL_ACCEPTED, max_new_tokens=20)  # nothing is rejected: what is seen beside its own is padding
    assert_found(broken, batch, Check.RECT, by=PADDING, all_rows=True)


def test_rejected_attended() -> None:
    def hide(step: int, mask: torch.Tensor) -> torch.Tensor:
        mask = mask.clone()
        if step >= AT:
            mask[ROW, -ALL_REJECTED.draft_tokens :] = 1
        return mask

    assert_found(Broken(hide=hide, in_place=True), ALL_REJECTED, Check.RECT, by=ALL_REJECTED.draft_tokens)


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gemma3"])
@pytest.mark.parametrize("by", [1, -1])
def test_crop_off_by_one(by: int, architecture: str) -> None:
    def keep(step: int, kept: list[int]) -> list[int]:
        return [count + by * (step == AT and row == ROW) for row, count in enumerate(kept)]

    assert_found(Broken(keep=keep), replace(ALL_REJECTED, architecture=architecture), Check.RECT, by=by)


@pytest.mark.parametrize("by", [1, -1])
def test_crop_off_by_one_in_a_full_window(by: int) -> None:
    """The number of slots is right, an older one takes the lost one's place: what they hold tells."""

    def keep(step: int, kept: list[int]) -> list[int]:
        return [count + by * (step == 9 and row == ROW) for row, count in enumerate(kept)]

    batch = replace(ALL_REJECTED, architecture="mistral")
    assert_found(Broken(keep=keep), batch, Check.RECT, step=9, expected=8, actual=7)


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("place", [0, 2, -1])
def test_live_slot_masked(place: int, in_place: bool) -> None:
    def hide(step: int, mask: torch.Tensor) -> torch.Tensor:
        mask = mask.clone()
        if step == AT:
            mask[ROW, mask[ROW].nonzero()[place, 0]] = 0
        return mask

    assert_found(Broken(hide=hide, in_place=in_place), BATCH, Check.RECT, by=-1)


def test_all_live_slots_masked() -> None:
    def hide(step: int, mask: torch.Tensor) -> torch.Tensor:
        mask = mask.clone()
        mask[ROW] *= step < AT
        return mask

    assert_found(Broken(hide=hide, in_place=True), BATCH, Check.RECT, actual=1)


def test_mask_not_extended() -> None:
    def alter(forward: Forward) -> None:
        if forward.step == AT:
            forward.attention_mask = forward.attention_mask[:, : -forward.input_ids.shape[1]]

    assert_found(Broken(forward=alter), BATCH, Check.RECT, by=-1, all_rows=True)


@pytest.mark.parametrize("pad", [30, 7, 2])
def test_padding_recognised_by_its_id(pad: int) -> None:
    """The pad token is inside the prompt, begins it or ends it; each is hidden with the padding."""

    def alter(forward: Forward) -> None:
        if forward.step == 0:
            forward.attention_mask = (forward.input_ids != pad).long()

    batch = replace(BATCH, pad=pad)
    place = batch.prompts[ROW].index(pad)
    assert_found(
        Broken(forward=alter), batch, Check.RECT, step=0, query=PADDING + place, expected=place + 1, actual=place
    )


def test_only_the_first_layer_trimmed() -> None:
    """Batch 1 without padding, one token a forward: every layer takes what its cache holds."""

    def alter(forward: Forward) -> None:
        forward.attention_mask = None
        if forward.step == AT:
            first, *_ = forward.cache.cache.layers
            first.keys, first.values = first.keys[:, :, :-1], first.values[:, :, :-1]

    batch = replace(ALL_REJECTED, prompts=((5, 9, 11, 14),))
    one_at_a_time = _without_proposals(Broken(forward=alter))
    result = audit(one_at_a_time, batch)
    finding = result.judgements[0].findings[0]
    index = len(batch.prompts[0]) + AT - 1
    assert (finding.check, finding.step, finding.layer) == (Check.RECT, AT, 0)
    assert (finding.expected, finding.actual) == (index + 1, index)


def _without_proposals(broken: Broken):
    class NoDraft:
        def start(self, **options):
            return self

        def propose(self, rows, count):
            return torch.zeros(len(rows), 0, dtype=torch.long)

    def decode(target, draft, tokenizer, prompts, *, draft_tokens, **options):
        return broken.decode(target, NoDraft(), tokenizer, prompts, draft_tokens=0, **options)

    return decode


def test_a_twin_does_not_excuse() -> None:
    """Rows with equal prompts hold equal bits; the fault of one is its own, and the output hides it."""

    def alter(forward: Forward) -> None:
        shifted(forward, ROW, 1)

    batch = replace(BATCH, prompts=((7, 30, 2), (7, 30, 2), (7, 30, 2)))
    result = audit(Broken(forward=alter).decode, batch)
    assert result.outputs == result.expected  # rotary positions: an offset changes nothing in exact arithmetic
    assert [judgement.sync for judgement in result.judgements].count(Sync.VIOLATED) == 1


def test_harm_is_done_by_a_token_fed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fed soundly, then again with a wrong position: the slot that stays is the wrong one."""
    calls: list[int] = []

    def following(lengths: torch.Tensor, count: int) -> torch.Tensor:
        positions = following_positions(lengths, count).clone()
        calls.append(len(calls) + 1)
        if calls[-1] == AT:
            positions[ROW, 0] += 1
        return positions

    monkeypatch.setattr(rectangle, "following_positions", following)
    result = audit(last_token_again.decode, ALL_ACCEPTED)
    judgement = result.judgements[ROW]
    assert judgement.sync is Sync.VIOLATED
    finding = judgement.findings[0]
    assert (finding.check, finding.step, finding.query) == (Check.POS, AT, 0)
    assert finding.actual == finding.expected + 1
    assert [other.sync for other in result.judgements].count(Sync.CERTIFIED) == 2
