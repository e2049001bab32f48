"""Prompt lookup: what followed the last tokens the last time they occurred."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from specaudit.decoders.ngram import NgramDraft
from specaudit.decoders.rows import start_rows


@pytest.mark.parametrize(
    ("size", "stream", "expected"),
    [
        (2, [1, 2, 3, 4, 9, 1, 2], [3, 4, 9, 1]),
        (2, [1, 2, 3, 1, 2, 4, 5, 6, 1, 2], [4, 5, 6, 1]),  # the most recent occurrence
        (2, [7, 8, 7, 8], [7, 8, 7, 8]),  # runs into the end, and is read on
        (1, [5, 5], [5, 5, 5, 5]),
        (3, [1, 2, 3, 4, 2, 3], [3, 3, 3, 3]),  # two tokens are no match for three
        (2, [6], [6, 6, 6, 6]),  # shorter than what is looked up
        (1, [6], [6, 6, 6, 6]),
        (2, [4, 4, 4], [4, 4, 4, 4]),  # the earlier occurrence overlaps the last
    ],
)
def test_continuation(size: int, stream: list[int], expected: list[int]) -> None:
    assert NgramDraft(size).continuation(stream, 4) == expected


@given(stream=st.lists(st.integers(0, 2), min_size=1, max_size=12), size=st.integers(1, 4), count=st.integers(1, 6))
def test_against_a_plain_search(stream: list[int], size: int, count: int) -> None:
    matches = (
        [start for start in range(len(stream) - size) if stream[start : start + size] == stream[-size:]]
        if len(stream) > size
        else []
    )
    source = matches[-1] + size if matches else len(stream) - 1
    extended = list(stream)
    for place in range(count):
        extended.append(extended[source + place])
    assert NgramDraft(size).continuation(stream, count) == extended[len(stream) :]


def test_rows_are_looked_up_in_their_own_streams() -> None:
    rows = start_rows([[1, 2, 3, 1], [9, 8, 9]], budget=9, eos_token_ids=())
    rows[0].commit([2])
    session = NgramDraft(1).start(pad_token_id=0, device=torch.device("cpu"))
    assert session.propose(rows, 2).tolist() == [[3, 1], [8, 9]]
