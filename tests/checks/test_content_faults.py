"""Faults of content: number and place of the slots are right, what they hold is not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from specaudit.core.vocabulary import Cause, Check, Sync
from specaudit.decoders import eqspec
from tests.checks.batches import audit
from tests.checks.faulty import Broken, Forward
from tests.checks.test_faults import ALL_ACCEPTED, AT, BATCH

if TYPE_CHECKING:
    import torch


def altered(change) -> Broken:
    """Return a decoder whose cached states are changed once, before round AT; `change` gets keys or values."""

    def alter(forward: Forward) -> None:
        if forward.step == AT:
            for layer in forward.cache.cache.layers:
                layer.keys, layer.values = change(layer.keys.clone()), change(layer.values.clone())

    return Broken(forward=alter)


def test_rows_swapped_in_the_cache() -> None:
    batch = replace(BATCH, prompts=((5, 9, 11, 14), (7, 30, 2, 8)))
    result = audit(altered(lambda states: states.flip(0)).decode, batch)
    assert result.outputs != result.expected
    for row, judgement in enumerate(result.judgements):
        assert judgement.sync is Sync.VIOLATED, row
        assert (judgement.findings[0].check, judgement.findings[0].step) == (Check.KV, AT)
        assert judgement.causes[0].cause is Cause.FOREIGN_KV, judgement.causes


def test_a_zeroed_slot() -> None:
    def zeroed(states: torch.Tensor) -> torch.Tensor:
        states[:, :, -2] = 0
        return states

    result = audit(altered(zeroed).decode, ALL_ACCEPTED)
    assert result.outputs != result.expected
    for row, judgement in enumerate(result.judgements):
        assert judgement.sync is Sync.VIOLATED
        finding = judgement.findings[0]
        assert (finding.check, finding.step, finding.row, finding.query) == (Check.KV, AT, row, 0)
        assert "bits that nobody wrote" in finding.message


def test_one_altered_layer() -> None:
    def alter(forward: Forward) -> None:
        if forward.step == AT:
            middle = forward.cache.cache.layers[1]
            middle.values = middle.values.roll(1, dims=2)

    result = audit(Broken(forward=alter).decode, ALL_ACCEPTED)
    assert result.outputs != result.expected
    for row, judgement in enumerate(result.judgements):
        assert judgement.sync is Sync.VIOLATED
        assert (judgement.findings[0].check, judgement.findings[0].step, judgement.findings[0].row) == (
            Check.KV,
            AT,
            row,
        )


def test_a_token_that_the_target_did_not_choose() -> None:
    """The output itself is changed after decoding: every context is clean, one choice is not the target's."""

    def decode(target: Any, draft: Any, tokenizer: Any, prompts: Any, **options: Any) -> list[list[int]]:
        outputs = eqspec.decode(target, draft, tokenizer, prompts, **options)
        outputs[1][-1] = (outputs[1][-1] + 1) % 64
        return outputs

    result = audit(decode, replace(BATCH, eos=63))
    assert [judgement.sync is Sync.VIOLATED for judgement in result.judgements] == [False, True, False]
    (finding,) = result.judgements[1].findings
    assert finding.check is Check.WARRANT
    assert (finding.expected, finding.actual) == (result.expected[1][-1], result.outputs[1][-1])


def test_a_sound_twin_does_not_hide_contents() -> None:
    """Two rows with one prompt: the output of the altered one is right, and its twin read every prefix soundly."""

    def nudged(states: torch.Tensor) -> torch.Tensor:
        states[1, :, -2] *= 1 + 1e-9
        return states

    batch = replace(ALL_ACCEPTED, prompts=((7, 30, 2, 8), (7, 30, 2, 8), (5, 9, 11, 14)))
    result = audit(altered(nudged).decode, batch)
    assert result.outputs == result.expected
    syncs = [judgement.sync for judgement in result.judgements]
    assert syncs[2] is Sync.CERTIFIED
    assert sorted(syncs[:2]) == [Sync.CERTIFIED, Sync.VIOLATED]
    violated = next(judgement for judgement in result.judgements if judgement.sync is Sync.VIOLATED)
    assert (violated.findings[0].check, violated.findings[0].step, violated.findings[0].row) == (Check.KV, AT, 1)
