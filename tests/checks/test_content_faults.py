"""Faults of content: what RECT sees of them, and what is left to the certificate because number and place are right."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from specaudit.core.vocabulary import Check, Sync
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


def test_rows_swapped_in_the_cache_are_strangers() -> None:
    batch = replace(BATCH, prompts=((5, 9, 11, 14), (7, 30, 2, 8)))
    result = audit(altered(lambda states: states.flip(0)).decode, batch)
    assert result.outputs != result.expected
    for row, judgement in enumerate(result.judgements):
        assert judgement.sync is not Sync.CLEAN, row
    assert any(finding.check is Check.RECT for judgement in result.judgements for finding in judgement.findings)


def test_a_zeroed_slot_is_left_to_the_certificate() -> None:
    def zeroed(states: torch.Tensor) -> torch.Tensor:
        states[:, :, -2] = 0
        return states

    result = audit(altered(zeroed).decode, ALL_ACCEPTED)
    assert result.outputs != result.expected
    assert {judgement.sync for judgement in result.judgements} == {Sync.CLEAN}


def test_one_altered_layer_is_left_to_the_certificate() -> None:
    def alter(forward: Forward) -> None:
        if forward.step == AT:
            middle = forward.cache.cache.layers[1]
            middle.values = middle.values.roll(1, dims=2)

    result = audit(Broken(forward=alter).decode, ALL_ACCEPTED)
    assert result.outputs != result.expected
    assert {judgement.sync for judgement in result.judgements} == {Sync.CLEAN}
