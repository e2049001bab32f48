"""ROUGE-L against numbers worked out by hand and the library's own scorer; nothing is loaded before it is needed."""

from __future__ import annotations

import subprocess
import sys
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specaudit.text.rouge import rouge_l


@pytest.mark.parametrize(
    ("reference", "candidate", "expected"),
    [
        ("the cat sat", "the cat sat", 1.0),
        ("the cat sat", "the cat", 0.8),  # precision 1, recall 2/3
        ("the cat sat on the mat", "the mat sat on the cat", 2 * (4 / 6) ** 2 / (2 * 4 / 6)),
        ("the cat", "a dog", 0.0),
        ("The CAT; sat!", "the cat sat", 1.0),
        ("a b c d e f g h i j k l m n o p q r s", "a b c d e f g h i j k l m n o p q r s s", 2 * (19 / 20) / (1 + 19 / 20)),
    ],
)  # fmt: skip
def test_f1_of_the_longest_common_subsequence(reference: str, candidate: str, expected: float) -> None:
    assert rouge_l(reference, candidate) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("pair", [("", "the cat"), ("the cat", ""), ("猫坐着", "猫坐着"), ("...", "!"), ("кот", "the")])
def test_a_text_without_a_word_that_it_keeps_is_not_scored(pair: tuple[str, str]) -> None:
    assert rouge_l(*pair) is None


WORDS = st.lists(st.sampled_from(["the", "cat", "sat", "on", "a"]), min_size=1, max_size=30)


@given(WORDS, WORDS)
def test_long_texts_get_the_number_of_the_library(reference: list[str], candidate: list[str]) -> None:
    expected = rouge_l(" ".join(reference), " ".join(candidate))
    with patch("specaudit.text.rouge.LARGEST_TABLE", 0):
        assert rouge_l(" ".join(reference), " ".join(candidate)) == pytest.approx(expected, abs=1e-12)


def test_texts_of_a_hundred_thousand_words_are_no_matter() -> None:
    numbers = [str(number * number % 1009) for number in range(100_000)]
    text = " ".join(numbers)
    score = rouge_l(text, " ".join(numbers[7:]))
    assert score == pytest.approx(2 * 99_993 / 199_993)


def test_the_library_is_loaded_with_the_first_score() -> None:
    program = (
        "import sys; from specaudit.text.rouge import rouge_l; assert rouge_l('a', 'a') == 1; "
        "assert 'rouge_score' not in sys.modules; rouge_l('a', 'b'); assert 'rouge_score' in sys.modules; "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
