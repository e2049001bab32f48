"""Fingerprints name what slots hold: equal bits wherever they are moved, different ones for anything else."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from specaudit.trace.fingerprint import slot_fingerprints, state_fingerprints

DTYPES = [torch.float32, torch.bfloat16, torch.float64, torch.float16]


def random_states(seed: int, dtype: torch.dtype, *, rows: int = 3, heads: int = 2, slots: int = 7, width: int = 8):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, heads, slots, width, generator=generator, dtype=torch.float64).to(dtype)


@given(
    seed=st.integers(0, 10**6), dtype=st.sampled_from(DTYPES), moves=st.permutations(range(7)), cut=st.integers(1, 7)
)
def test_slots_are_known_after_any_move(seed: int, dtype: torch.dtype, moves: list[int], cut: int) -> None:
    """Permuted, cropped, gathered, rows exchanged, memory laid out anew: a slot keeps its fingerprint."""
    states = random_states(seed, dtype)
    before = slot_fingerprints(states, seed=1)
    rows = torch.tensor([2, 0, 2])
    moved = states[rows][:, :, moves][:, :, :cut]
    assert torch.equal(slot_fingerprints(moved, seed=1), before[rows][:, moves][:, :cut])
    strided = moved.transpose(1, 2).contiguous().transpose(1, 2)
    assert torch.equal(slot_fingerprints(strided, seed=1), slot_fingerprints(moved, seed=1))


@given(seed=st.integers(0, 10**6), dtype=st.sampled_from(DTYPES))
def test_different_slots_differ(seed: int, dtype: torch.dtype) -> None:
    fingerprints = slot_fingerprints(random_states(seed, dtype, slots=40), seed=1)
    assert fingerprints.unique().numel() == fingerprints.numel()


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_of_either_sign_are_one(dtype: torch.dtype) -> None:
    states = random_states(0, dtype)
    states[:, :, :, ::3] = 0
    negative = torch.where(states == 0, torch.tensor(-0.0, dtype=dtype), states)
    assert torch.equal(slot_fingerprints(states, seed=1), slot_fingerprints(negative, seed=1))
    assert torch.equal(slot_fingerprints(states + 0.0, seed=1), slot_fingerprints(negative, seed=1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [8, 5])
def test_signs_flipped_in_pairs_do_not_collide(dtype: torch.dtype, width: int) -> None:
    states = random_states(3, dtype, rows=1, heads=1, slots=1, width=width)
    seen = {int(slot_fingerprints(states, seed=1))}
    for one in range(width):
        for other in range(one + 1, width):
            flipped = states.clone()
            flipped[..., [one, other]] *= -1
            seen.add(int(slot_fingerprints(flipped, seed=1)))
    assert len(seen) == 1 + width * (width - 1) // 2


@given(seed=st.integers(0, 10**6), heads=st.permutations(range(2)))
def test_heads_are_not_interchangeable(seed: int, heads: list[int]) -> None:
    states = random_states(seed, torch.float32)
    is_same = torch.equal(slot_fingerprints(states, seed=1), slot_fingerprints(states[:, heads], seed=1))
    assert is_same == (list(heads) == [0, 1])


def test_layers_and_tensors_are_told_apart() -> None:
    states = random_states(0, torch.float32)
    keys, values = state_fingerprints(states, states, layer=0, seed=1)
    other_layer, _ = state_fingerprints(states, states, layer=1, seed=1)
    assert not (keys == values).any()
    assert not (keys == other_layer).any()


def test_the_seed_chooses_the_weights() -> None:
    states = random_states(0, torch.float32)
    assert not (slot_fingerprints(states, seed=1) == slot_fingerprints(states, seed=2)).any()
