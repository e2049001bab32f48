"""Each symptom can fire, says where and how much, and does not fire on what the reference does itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specaudit.core.vocabulary import Symptom
from specaudit.text.output_pair import Vocabulary
from specaudit.text.prompt_echo import echo_length
from specaudit.text.symptoms import find_symptoms
from tests.text.pairs import EOS, PAD, ROLE, of_ids, of_texts

PLAIN = [10, 11, 12, 13, 14, 15, 16, EOS]
LOOP = [90, 91] * 8
ORDINARY_PAD = Vocabulary(eos_ids=frozenset({EOS}), pad_id=PAD, special_ids=frozenset({EOS}))
PAD_IS_EOS = Vocabulary(eos_ids=frozenset({EOS}), pad_id=EOS, special_ids=frozenset({EOS}))
EOS_IGNORED = Vocabulary(eos_ids=frozenset(), pad_id=PAD, special_ids=frozenset({EOS, PAD, ROLE}))
EOS_UNKNOWN = Vocabulary(eos_ids=None, pad_id=None)
HALVES = {60: "\ufffd", 61: "\x07", 62: "!?;" * 3, 63: "\x1b[31m", 64: "...", 65: "\ufffd" * 4}

FIRING = {
    # name: pair, symptom, onset, extent, extent in the reference, what
    "loop": (of_ids(PLAIN, [10, *LOOP]), "repetition", 1, 16, 0, "2 tokens 8 times over: ' w90 w91'"),
    "special token": (of_ids(PLAIN, [10, 11, ROLE, *PLAIN]), "symbols", 2, 1, 0, "1 special token"),
    "passed EOS": (of_ids(PLAIN, [*PLAIN, 17, 18, 19]), "symbols", None, 1, 0, "1 special token"),
    "another special token": (
        of_ids([10, ROLE, 11, EOS], [10, ROLE, 12, ROLE, EOS]), "symbols", 3, 2, 1, "2 special tokens",
    ),
    "half a character": (
        of_ids(PLAIN, [10, 11, 60, 12, EOS], texts=HALVES), "symbols", 2, 1, 0, "1 U+FFFD",
    ),
    "half a character, then EOS": (
        of_ids(PLAIN, [10, 11, 12, 60, EOS], texts=HALVES), "symbols", 3, 1, 0, "1 U+FFFD",
    ),
    "four halves at the end": (of_ids(PLAIN[:3], [10, 11, 65], texts=HALVES), "symbols", 2, 4, 0, "4 U+FFFD"),
    "controls": (
        of_ids(PLAIN, [10, 61, 12, 63, EOS], texts=HALVES), "symbols", 1, 2, 0, "2 control characters",
    ),
    "punctuation": (of_ids(PLAIN, [10, 62, EOS], texts=HALVES), "symbols", 1, 1, 0, "1 run of punctuation"),
    "several kinds": (
        of_ids(PLAIN, [10, ROLE, 61, 60, 11, EOS], texts=HALVES),
        "symbols", 1, 3, 0, "1 special token, 1 U+FFFD, 1 control character",
    ),
    "spelled out": (of_texts("fine", "f<|im_end|>i[PAD]ne </s>"), "symbols", None, 3, 0, "3 special tokens"),
    "beginning": (of_ids(PLAIN, PLAIN[:3]), "truncation", 3, 3, 7, "only the first 3 of 7 tokens"),
    "early EOS": (of_ids(PLAIN, [10, 11, EOS]), "truncation", 2, 2, 7, "only the first 2 of 7 tokens"),
    "stops midway": (
        of_ids(PLAIN, [10, 20, 21]),
        "truncation", 3, 3, 7, "breaks off after 3 tokens without an EOS, the reference has 7",
    ),
    "stops midway, EOS ignored": (
        of_ids(PLAIN, [10, 20], vocabulary=EOS_IGNORED),
        "truncation", 2, 2, 8, "breaks off after 2 tokens without an EOS, the reference has 8",
    ),
    "beginning of a text": (
        of_texts("It is fine today.", "It is "), "truncation", None, 5, 17, "only the first 5 of 17 characters",
    ),
    "nothing": (of_ids(PLAIN, []), "empty", 0, 0, 7, "nothing to read"),
    "EOS alone": (of_ids(PLAIN, [EOS]), "empty", 0, 0, 7, "nothing to read"),
    "blank": (of_ids(PLAIN, [4, 5, 5, EOS]), "empty", 0, 0, 7, "nothing to read"),
    "no text": (of_texts("fine", " \n"), "empty", None, 0, 4, "nothing to read"),
    "padding": (
        of_ids(PLAIN, [10, PAD, PAD, 11, 12, 13, 14, EOS]), "leak", 1, 2, 0, "2 padding tokens inside the output: id 0",
    ),
    "padding that is EOS": (
        of_ids(PLAIN, [*PLAIN, EOS, EOS], vocabulary=PAD_IS_EOS),
        "leak", 8, 2, 0, "2 padding tokens inside the output: id 2",
    ),
    "whole prompt": (
        of_ids(PLAIN, [30, 31, 32, 33, 34, *PLAIN], prompt=[30, 31, 32, 33, 34]),
        "prompt-echo", 0, 5, 0, "begins with the last 5 of 5 tokens of the prompt",
    ),
    "end of the prompt": (
        of_ids(PLAIN, [31, 32, 33, 34, *PLAIN], prompt=[1, 30, 31, 32, 33, 34]),
        "prompt-echo", 0, 4, 0, "begins with the last 4 of 6 tokens of the prompt",
    ),
    "prompt as text": (
        of_texts("Fine.", "How is the weather? Fine.", prompt="Q: How is the weather?"),
        "prompt-echo", None, 19, 0, "begins with the last 19 of 22 characters of the prompt",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FIRING)
def test_symptom_fires_alone(name: str) -> None:
    pair, symptom, onset, extent, reference_extent, what = FIRING[name]
    (found,) = find_symptoms(pair)
    assert found.symptom is Symptom(symptom)
    if onset is not None:
        assert found.onset == onset
    assert (found.extent, found.reference_extent, found.what) == (extent, reference_extent, what)


def test_every_symptom_has_fired() -> None:
    assert {case[1] for case in FIRING.values()} == {symptom.value for symptom in Symptom}


@pytest.mark.parametrize("name", FIRING)
def test_symptom_does_not_fire_on_the_same_output_of_the_reference(name: str) -> None:
    pair = FIRING[name][0]
    same = type(pair)(
        prompt=pair.prompt, reference=pair.candidate, candidate=pair.candidate, vocabulary=pair.vocabulary
    )
    assert find_symptoms(same) == ()


QUIET = {
    "another word": of_ids(PLAIN, [10, 11, 20, 21, 22, 23, 24, EOS]),
    "an ending of its own": of_ids(PLAIN, [10, 20, EOS]),
    "EOS alone missing": of_ids(PLAIN, PLAIN[:-1]),
    "stops midway, EOS not known": of_ids(PLAIN, [10, 20, 21], vocabulary=EOS_UNKNOWN),
    "longer": of_ids(PLAIN[:4], [*PLAIN[:3], 20, 21, 22]),
    "cut character at the end": of_ids(PLAIN, [10, 20, 21, 22, 23, 24, 25, 60, 60, 60], texts=HALVES),
    "cut character in a text": of_texts("It is fine.", "It was fine \ufffd"),
    "line breaks and tabs": of_texts("It is fine.", "It\twas\r\nfine."),
    "an ellipsis and brackets": of_texts("It is fine.", 'It was (not "[fine]");...'),
    "a rule that the reference has too": of_texts("One\n----------\ntwo", "One\n==========\nthree"),
    "its own loop moved by one": of_ids([10, *LOOP], [11, 12, *LOOP]),
    "a special token of its own": of_ids([10, ROLE, 11, 12, EOS], [10, 11, ROLE, 13, EOS]),
    "an ordinary token lent as padding": of_ids(PLAIN, [10, PAD, 11, PAD, 12, 13, 14, 15, EOS], vocabulary=ORDINARY_PAD),
    "padding that is EOS, once": of_ids(PLAIN, [20, 21, EOS], vocabulary=PAD_IS_EOS),
    "both empty": of_ids([EOS], []),
    "three tokens of the prompt": of_ids(PLAIN, [32, 33, 34, *PLAIN], prompt=[30, 31, 32, 33, 34]),
    "echoes less than the reference": of_ids([31, 32, 33, 34, 35], [32, 33, 34, 35, 10], prompt=[30, 31, 32, 33, 34, 35]),
}  # fmt: skip


@pytest.mark.parametrize("name", QUIET)
def test_what_is_no_symptom(name: str) -> None:
    assert find_symptoms(QUIET[name]) == ()


def test_several_come_in_the_order_of_the_vocabulary() -> None:
    prompt = [30, 31, 32, 33]
    found = find_symptoms(of_ids(PLAIN, [*prompt, PAD, ROLE, 60, *LOOP], prompt=prompt, texts=HALVES))
    assert [one.symptom.value for one in found] == ["repetition", "symbols", "leak", "prompt-echo"]


IDS = st.lists(st.integers(0, 6), max_size=14)


@given(IDS, IDS, IDS)
def test_onsets_lie_inside_the_output_and_extents_exceed(
    reference: list[int], candidate: list[int], prompt: list[int]
) -> None:
    found = find_symptoms(of_ids(reference, candidate, prompt=prompt, texts={6: "\ufffd"}))
    assert reference != candidate or found == ()
    for one in found:
        assert one.onset is not None
        assert 0 <= one.onset <= len(candidate)
        missing = one.symptom in {Symptom.TRUNCATION, Symptom.EMPTY}
        assert one.extent < one.reference_extent if missing else one.extent > one.reference_extent


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_any_text_is_taken(reference: str, candidate: str, prompt: str) -> None:
    found = find_symptoms(of_texts(reference, candidate, prompt=prompt))
    assert all(one.onset is None for one in found)


@given(st.lists(st.integers(0, 1), max_size=9), st.lists(st.integers(0, 1), max_size=9))
def test_echo_is_that_of_brute_force(prompt: list[int], output: list[int]) -> None:
    lengths = [n for n in range(len(prompt) + 1) if prompt[len(prompt) - n :] == output[:n]]
    assert echo_length(prompt, output) == max(lengths)
