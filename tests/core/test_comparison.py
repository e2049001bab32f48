from hypothesis import given
from hypothesis import strategies as st

from specaudit.core.comparison import Divergence, first_divergence, partial_match

TOKENS = st.lists(st.integers(0, 3), max_size=8)


def test_identical_outputs_do_not_diverge() -> None:
    assert first_divergence([1, 2], [1, 2]) is None
    assert first_divergence([], []) is None
    assert partial_match([], []) == 1.0


def test_a_prefix_is_not_a_match() -> None:
    assert first_divergence([1, 2, 3], [1, 2]) == Divergence(position=2, expected=3, actual=None)
    assert first_divergence([1, 2], [1, 2, 3]) == Divergence(position=2, expected=None, actual=3)
    assert first_divergence([1], []) == Divergence(position=0, expected=1, actual=None)


def test_partial_match_counts_tails_and_truncations() -> None:
    assert partial_match([1, 2, 3, 4], [1, 2]) == 0.5
    assert partial_match([1, 2], [1, 2, 3, 4]) == 0.5
    assert partial_match([1, 2, 3, 4], [1, 9, 3, 4]) == 0.25
    assert partial_match([1], []) == 0.0


@given(TOKENS, TOKENS)
def test_divergence_is_where_it_says(reference: list[int], candidate: list[int]) -> None:
    divergence = first_divergence(reference, candidate)
    if divergence is None:
        assert reference == candidate
        assert partial_match(reference, candidate) == 1.0
        return
    assert reference[: divergence.position] == candidate[: divergence.position]
    assert divergence.expected != divergence.actual
    assert partial_match(reference, candidate) < 1.0
