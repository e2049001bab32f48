"""Whose output a diverged one is: swaps, rings, copies, and what only looks like them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from specaudit.core.displacement import displacements
from specaudit.core.vocabulary import Compared, Verdict
from tests.core.cases import made_case

A, B, C, D = (1, 2, 3, 4), (5, 6, 7, 8), (9, 8, 7, 6), (7, 7, 7, 7)
ZEROS = (0,) * 40


def found(*pairs: tuple[tuple[int, ...], tuple[int, ...] | None]) -> dict[str, tuple[str, bool]]:
    """Return owner and whether permuted by prompt, for cases given as reference and output."""
    cases = [made_case(prompt_id=f"p{n}", reference=pair[0], output=pair[1]) for n, pair in enumerate(pairs)]
    by_case = displacements(cases)
    return {
        case.prompt_id: (by_case[case.case_id].owner, by_case[case.case_id].is_permuted)
        for case in cases
        if case.case_id in by_case
    }


def test_a_swap_is_permuted_on_both_sides() -> None:
    assert found((A, B), (B, A), (C, C)) == {"p0": ("p1", True), "p1": ("p0", True)}


def test_a_ring_is_permuted() -> None:
    assert found((A, B), (B, C), (C, A)) == {"p0": ("p1", True), "p1": ("p2", True), "p2": ("p0", True)}


def test_a_copy_and_a_shift_are_not() -> None:
    assert found((A, B), (B, B)) == {"p0": ("p1", False)}
    assert found((A, B), (B, C), (C, D)) == {"p0": ("p1", False), "p1": ("p2", False)}


def test_a_ring_does_not_hold_what_hangs_on_it() -> None:
    assert found((A, B), (B, A), (C, A)) == {"p0": ("p1", True), "p1": ("p0", True), "p2": ("p0", False)}


def test_the_reference_of_an_unmeasured_prompt_counts() -> None:
    assert found((A, B), (B, None)) == {"p0": ("p1", False)}


def test_nothing_and_single_tokens_have_no_place() -> None:
    assert found((A, ()), ((), A)) == {"p1": ("p0", False)}
    assert found((A, (2,)), ((2,), A)) == {"p1": ("p0", False)}


def test_a_row_of_zeros_is_nobodys_but_may_change_places() -> None:
    assert found((A, ZEROS), (ZEROS, ZEROS)) == {}
    assert found((A, ZEROS), (ZEROS, A)) == {"p0": ("p1", True), "p1": ("p0", True)}


def test_texts_are_matched_as_texts() -> None:
    def text(prompt_id: str, reference: str, output: str):
        return replace(
            made_case(prompt_id=prompt_id),
            compared=Compared.TEXT, verdict=Verdict.DIVERGED, output_ids=None, reference_text=reference,
            output_text=output,
        )  # fmt: skip

    swapped = displacements([text("p", "one", "two"), text("q", "two", "one")])
    assert [one.is_permuted for one in swapped.values()] == [True, True]


@given(st.permutations(range(7)), st.lists(st.booleans(), min_size=7, max_size=7))
def test_a_permutation_is_found_whole(order: list[int], is_spoilt: list[bool]) -> None:
    references = [(n, n, n) for n in range(7)]
    outputs = [(99, n) if is_spoilt[n] else references[order[n]] for n in range(7)]
    expected = set()
    for start in range(7):
        ring, place = [start], order[start]
        while place != start:
            ring.append(place)
            place = order[place]
        if len(ring) > 1 and not any(is_spoilt[n] for n in ring):
            expected |= {f"p{n}" for n in ring}
    by_prompt = found(*zip(references, outputs, strict=True))
    assert {prompt for prompt, (_, is_permuted) in by_prompt.items() if is_permuted} == expected
