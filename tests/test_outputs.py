"""What a decoder may return, and what is refused rather than compared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from specaudit.outputs import UnusableOutputError, read_outputs


@pytest.mark.parametrize(
    "returned",
    [
        [[1, 2], []],
        ((1, 2), ()),
        [torch.tensor([1, 2]), torch.tensor([], dtype=torch.int64)],
        [[np.int64(1), torch.tensor(2)], []],
    ],
)
def test_lists_of_ids_in_any_form(returned: Any) -> None:
    assert read_outputs(returned, count=2, vocabulary_size=10) == [(1, 2), ()]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "returned nothing (None)"),
        ("text", "returned a str"),
        (torch.zeros(2, 3, dtype=torch.int64), "not a list with one output a prompt; call .tolist() on it"),
        ([[1]], "1 outputs for 2 prompts"),
        ([[1], [2], [3]], "3 outputs for 2 prompts"),
        ([[1], "two"], "output 1 is a str"),
        ([[1], None], "output 1 is nothing (None)"),
        ([[1], [2.0]], "output 1 holds a float"),
        ([[1], [True]], "output 1 holds a bool"),
        ([[1], [[2]]], "output 1 holds a list"),
        ([[1], [-1]], "output 1 holds id -1, outside the vocabulary of 10"),
        ([[10], [1]], "output 0 holds id 10, outside the vocabulary of 10"),
        ([[1], torch.tensor([0.5])], "output 1 is a Tensor"),
        ([[1], torch.tensor([[2]])], "output 1 is a Tensor, not a list of token ids; call .tolist() on each row"),
        (SimpleNamespace(sequences=torch.zeros(2, 3)), "return its .sequences as lists"),
    ],
)
def test_everything_else_is_named(returned: Any, message: str) -> None:
    with pytest.raises(UnusableOutputError) as raised:
        read_outputs(returned, count=2, vocabulary_size=10)
    assert message in str(raised.value)
