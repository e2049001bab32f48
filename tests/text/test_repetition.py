"""Loops: found with their period and onset, excused by the reference's own and by nothing else."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specaudit.core.vocabulary import Symptom
from specaudit.text.repetition import LEAST_TOKENS, LONGEST_PERIOD, find_loops, find_repetition
from tests.text.pairs import of_ids, of_texts

PLAIN = list(range(10, 58))


def looping(phrase: list[int], copies: int, *, after: int = 6, rest: int = 0) -> list[int]:
    return [*PLAIN[:after], *phrase * copies, *PLAIN[40 : 40 + rest]]


@pytest.mark.parametrize(
    ("phrase", "copies", "what"),
    [
        ([90], 9, "one token 9 times in a row: ' w90'"),
        ([90, 91], 5, "2 tokens 5 times over: ' w90 w91'"),
        ([90, 91, 90, 92], 3, "4 tokens 3 times over: ' w90 w91 w90 w92'"),
        (list(range(100, 117)), 3, "17 tokens 3 times over: ' w100 w101 w102 w103 w104 w105 w106 w10…'"),
        (list(range(100, 100 + LONGEST_PERIOD)), 3, None),
    ],
)
def test_every_period_fires_at_its_onset(phrase: list[int], copies: int, what: str | None) -> None:
    found = find_repetition(of_ids(PLAIN, looping(phrase, copies, rest=3)))
    assert found is not None
    assert (found.symptom, found.onset, found.extent, found.reference_extent) == (
        Symptom.REPETITION, 6, len(phrase) * copies, 0,
    )  # fmt: skip
    assert what is None or found.what == what


def test_an_unfinished_last_copy_counts() -> None:
    found = find_repetition(of_ids(PLAIN, [*looping([90, 91, 92, 93], 3), 90, 91]))
    assert found is not None
    assert (found.extent, found.what.split(":")[0]) == (14, "4 tokens 3 times over")


@pytest.mark.parametrize(
    "candidate",
    [
        PLAIN,
        looping([90], LEAST_TOKENS - 1),
        looping([90, 91, 92, 93, 94, 95], 2, rest=4),
        looping([90, 91], 3),
        looping(list(range(100, 100 + LONGEST_PERIOD + 1)), 3),
        [token for number in range(12) for token in (70, 71, 100 + number)],  # a counted list
    ],
)
def test_what_stays_below_the_thresholds_is_text(candidate: list[int]) -> None:
    assert find_repetition(of_ids(PLAIN[::-1], candidate)) is None


def test_the_reference_excuses_its_own_loop_wherever_it_stands() -> None:
    reference = looping([90, 91, 92], 8, after=2)
    assert find_repetition(of_ids(reference, looping([90, 91, 92], 8, after=9))) is None
    assert find_repetition(of_ids(reference, looping([92, 90, 91], 8))) is None
    assert find_repetition(of_ids(reference, looping([91, 92, 90], 10))) is None


def test_the_reference_excuses_nothing_more() -> None:
    reference = looping([90, 91, 92], 4)
    longer = find_repetition(of_ids(reference, looping([90, 91, 92], 8)))
    assert longer is not None
    assert (longer.extent, longer.reference_extent) == (24, 12)
    another = find_repetition(of_ids(reference, looping([90, 92, 91], 4)))
    assert another is not None
    assert another.reference_extent == 0


def test_the_worst_of_several_is_reported() -> None:
    found = find_repetition(of_ids(PLAIN, [*looping([90], 9), *looping([91, 92], 12)]))
    assert found is not None
    assert (found.onset, found.extent) == (21, 24)


def test_texts_alone_are_cut_into_words_and_ideographs() -> None:
    found = find_repetition(of_texts("The weather is fine.", "The weather is not " + "not! " * 6))
    assert found is not None
    assert (found.onset, found.extent, found.what) == (None, 12, "2 pieces 6 times over: 'not !'")
    assert find_repetition(of_texts("今天天气很好。", "今天" + "的" * 9)) is not None
    assert find_repetition(of_texts("今天天气很好。", "今天天气不好, 我们在家里。")) is None


def test_ids_without_texts_are_named_by_id() -> None:
    pair = of_ids(PLAIN, looping([90], 9))
    bare = type(pair)(prompt=None, reference=pair.reference, candidate=pair.candidate)
    found = find_repetition(bare)
    assert found is not None
    assert found.what == "one token 9 times in a row: id 90"


def test_a_long_output_of_two_tokens_is_no_matter() -> None:
    random = Random(0)
    candidate = [random.randrange(2) for _ in range(20_000)]
    assert find_repetition(of_ids(PLAIN, candidate)) is not None


@given(st.lists(st.integers(0, 2), max_size=24))
def test_loops_are_those_of_brute_force(tokens: list[int]) -> None:
    found = {(loop.start, loop.length) for loop in find_loops(tokens)}
    expected = set()
    for period in range(1, len(tokens) // 2 + 1):
        for start in range(len(tokens)):
            end = start + period
            while end < len(tokens) and tokens[end] == tokens[end - period]:
                end += 1
            is_maximal = start == 0 or start + period > len(tokens) or tokens[start - 1] != tokens[start - 1 + period]
            if is_maximal and end - start >= 2 * period:
                expected.add((start, end - start))
    assert found == expected
