"""The reading of masks against attention itself: a slot is visible when a huge value in it changes the output."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from specaudit.trace.visibility import read_mask

ROWS, HEADS, WIDTH = 2, 2, 4


class Module(torch.nn.Module):
    """What attention functions ask of the module that calls them."""

    is_causal = True
    num_key_value_groups = 1
    training = False


def attend(implementation: str, query, key, value, mask):
    if implementation == "sdpa":
        return ALL_ATTENTION_FUNCTIONS["sdpa"](Module(), query, key, value, mask, scaling=0.3)[0]
    weights = query @ key.transpose(2, 3) * 0.3
    return ((weights if mask is None else weights + mask).softmax(-1) @ value).transpose(1, 2)


def brute_force(implementation: str, mask, *, queries: int, slots: int) -> torch.Tensor:
    """Return bool [B, q, n]: whether the output of a query changes when a slot's value is made huge."""
    generator = torch.Generator().manual_seed(0)
    query, key, value = (
        torch.randn(ROWS, HEADS, count, WIDTH, generator=generator, dtype=torch.float64)
        for count in (queries, slots, slots)
    )
    before = attend(implementation, query, key, value, mask)
    visible = torch.zeros(ROWS, queries, slots, dtype=torch.bool)
    for slot in range(slots):
        changed = value.clone()
        changed[:, :, slot] += 1e6
        after = attend(implementation, query, key, changed, mask)
        visible[:, :, slot] = (after - before).abs().nan_to_num(0).flatten(2).amax(-1) > 1e-3
    return visible


@st.composite
def masks(draw):
    queries, slots = draw(st.integers(1, 4)), draw(st.integers(4, 6))
    rows = draw(st.sampled_from([1, ROWS]))
    heads = draw(st.sampled_from([1, HEADS]))
    seen = torch.tensor(
        draw(st.lists(st.booleans(), min_size=rows * queries * slots, max_size=rows * queries * slots))
    ).view(rows, 1, queries, slots)
    seen[..., 0] |= ~seen.any(-1)  # a query that sees nothing has no output to change
    return seen.expand(-1, heads, -1, -1), queries, slots


@given(masks())
def test_boolean_masks(case) -> None:
    mask, queries, slots = case
    reading = read_mask(mask, batch=ROWS, queries=queries, width=slots, implementation="sdpa", is_causal=True)
    assert reading.obstacle is None
    assert torch.equal(reading.visible, brute_force("sdpa", mask, queries=queries, slots=slots))


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("low", [torch.finfo(torch.float64).min, float("-inf")])
@given(masks())
def test_additive_masks(low: float, implementation: str, case) -> None:
    mask, queries, slots = case
    additive = torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, low)
    reading = read_mask(
        additive, batch=ROWS, queries=queries, width=slots, implementation=implementation, is_causal=True
    )
    assert reading.obstacle is None
    assert torch.equal(reading.visible, brute_force(implementation, additive, queries=queries, slots=slots))


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize(("queries", "slots"), [(1, 5), (3, 3), (3, 6), (4, 4)])
def test_no_mask(queries: int, slots: int, implementation: str) -> None:
    """SDPA: one query sees all, several the upper-left triangle. Eager masks nothing."""
    reading = read_mask(None, batch=ROWS, queries=queries, width=slots, implementation=implementation, is_causal=True)
    assert torch.equal(reading.visible, brute_force(implementation, None, queries=queries, slots=slots))


@pytest.mark.parametrize(
    ("mask", "implementation", "reason"),
    [
        (torch.zeros(2, 5), "sdpa", "2 dimensions"),
        (torch.ones(2, 1, 1, 5, dtype=torch.bool), "eager", "booleans"),
        (torch.ones(2, 1, 1, 5, dtype=torch.long), "sdpa", "int64"),
        (torch.full((2, 1, 1, 5), -1.0), "sdpa", "weighs"),
        (torch.tensor([[True], [False]])[None, :, :, None].expand(2, 2, 1, 5), "sdpa", "heads"),
        (object(), "sdpa", "type object"),
        (None, "flash_attention_2", "'flash_attention_2'"),
    ],
)
def test_what_is_not_understood_is_said(mask, implementation: str, reason: str) -> None:
    reading = read_mask(mask, batch=2, queries=1, width=5, implementation=implementation, is_causal=True)
    assert reading.obstacle is not None
    assert reason in reading.obstacle
    assert reading.visible.shape == (2, 1, 5)


def test_columns_past_the_cache_are_cut_off() -> None:
    mask = torch.tensor([[[[True, False, True, True, True]]]])
    reading = read_mask(mask, batch=2, queries=1, width=3, implementation="sdpa", is_causal=True)
    assert reading.visible.tolist() == [[[True, False, True]]] * 2
