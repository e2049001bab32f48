"""The ledger and the search for a query's own slot."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from specaudit.trace.ledger import Ledger, own_slots
from specaudit.trace.records import UNKNOWN, Trace


def entered(ledger: Ledger, step: int, fed: np.ndarray) -> None:
    """Enter writes whose keys have these fingerprints in layer 0 and others in layer 1; values are zeros."""
    zeros = np.zeros_like(fed)
    ledger.enter(step, np.zeros(fed.shape, dtype=np.int64), {0: np.stack([fed, zeros]), 1: np.stack([fed * 7, zeros])})


def test_writes_are_found_by_their_bits() -> None:
    trace = Trace()
    ledger = Ledger(trace)
    entered(ledger, 0, np.array([[11, 12], [13, 14]]))
    entered(ledger, 1, np.array([[12], [99]]))  # 12 once more
    contents = ledger.look_up((0, 1), np.array([[14, 12, 5, 99]]) * 8)
    writes = [[] if content == UNKNOWN else trace.writes_of[content] for content in contents[0]]
    assert writes == [[3], [1, 4], [], [5]]
    assert [(write.step, write.row, write.query) for write in trace.writes][3:] == [(0, 1, 1), (1, 0, 0), (1, 1, 0)]


def test_layers_may_be_grouped_anew() -> None:
    """One layer cropped further than the others: what was written before is still known to each of them."""
    trace = Trace()
    ledger = Ledger(trace)
    entered(ledger, 0, np.array([[11, 12]]))
    (both,) = ledger.look_up((0, 1), np.array([[11, 12]]) * 8)
    entered(ledger, 1, np.array([[13]]))
    (first,) = ledger.look_up((0,), np.array([[11, 13]]))
    (second,) = ledger.look_up((1,), np.array([[12, 13]]) * 7)
    assert [trace.writes_of[content] for content in both] == [[0], [1]]
    assert [trace.writes_of[content] for content in first] == [[0], [2]]
    assert [trace.writes_of[content] for content in second] == [[1], [2]]


@given(
    data=st.data(),
    rows=st.integers(1, 3),
    queries=st.integers(1, 4),
    width=st.integers(4, 9),
)
def test_own_slots_hold_what_was_fed(data, rows: int, queries: int, width: int) -> None:
    """Distinct bits, anywhere in the cache: the place is found, or is unknown when the bits are gone."""
    columns = data.draw(st.permutations(range(width)))[:queries]
    fed = np.arange(rows * queries).reshape(rows, queries) + 1
    held = np.full((rows, width), 1000) + np.arange(width)
    held[:, columns] = fed
    is_lost = data.draw(st.booleans())
    if is_lost:
        held[0, columns[0]] = 5000
    visible = np.array(
        data.draw(st.lists(st.booleans(), min_size=rows * queries * width, max_size=rows * queries * width))
    ).reshape(rows, queries, width)
    expected = np.broadcast_to(columns, fed.shape).copy()
    if is_lost:
        expected[0, 0] = UNKNOWN
    assert own_slots(fed, held, visible).tolist() == expected.tolist()


def test_equal_bits_belong_to_the_last_columns_of_a_contiguous_cache() -> None:
    fed, held = np.array([[7, 7]]), np.array([[7, 3, 7, 7]])
    visible = np.array([[[True, True, True, False], [False, False, False, False]]])
    assert own_slots(fed, held, visible).tolist() == [[2, 3]]


def test_zeros_are_not_taken_for_the_unwritten_end_of_a_static_cache() -> None:
    fed, held = np.array([[0, 0]]), np.zeros((1, 6), dtype=np.int64)
    visible = np.array([[[True, False, False, False, False, False], [True, True, False, False, False, False]]])
    assert own_slots(fed, held, visible).tolist() == [[0, 1]]


def test_a_token_fed_again_has_the_slot_that_it_sees() -> None:
    fed, held = np.array([[7]]), np.array([[7, 5, 7, 0, 0]])
    assert own_slots(fed, held, np.array([[[False, True, True, False, False]]])).tolist() == [[2]]
    assert own_slots(fed, held, np.array([[[True, True, False, False, False]]])).tolist() == [[0]]
