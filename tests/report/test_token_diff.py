"""The diff of two outputs: aligned, in its width, and honest about what is not known."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from specaudit.report.symbols import ASCII, UNICODE
from specaudit.report.token_diff import ids_near, token_diff
from tests.report.sample_runs import DIVERGED_IDS, HOSTILE_TEXTS, REFERENCE_IDS, TEXTS, arm, case

ARM = arm("bsp", 4)


def _lines(one, *, texts=TEXTS, symbols=UNICODE, width=78) -> list[str]:
    return [line.plain for line in token_diff(one, symbols, token_texts=texts, width=width)]


def test_tokens_stand_under_each_other() -> None:
    assert _lines(case(ARM, 0, output_ids=DIVERGED_IDS), width=50) == [
        "token      2     3    4   5     6     7  8",
        "reference  ·sat  ·on  ·a  ·mat  .     ⏎  ·the",
        "candidate  ·sat  ·on  ·a  ·dog  ·ran  .  ⏎",
        "                          ^^^^",
    ]


def test_an_output_that_stops_early_says_so() -> None:
    assert _lines(case(ARM, 0, output_ids=REFERENCE_IDS[:11]), width=60) == [
        "token      4   5     6  7  8     9     10    11     12",
        "reference  ·a  ·mat  .  ⏎  ·the  ·dog  ·ran  .      </s>",
        "candidate  ·a  ·mat  .  ⏎  ·the  ·dog  ·ran  (end)",
        "                                             ^^^^^",
    ]


def test_an_empty_output_is_shown() -> None:
    lines = _lines(case(ARM, 0, output_ids=()), width=40)
    assert lines[2].split() == ["candidate", "(end)"]
    assert lines[0].split()[1] == "0"


def test_an_identical_output_has_no_diff() -> None:
    assert _lines(case(ARM, 0)) == []


def test_unknown_texts_are_shown_as_ids_beside_the_whole_text() -> None:
    lines = _lines(case(ARM, 0, output_ids=DIVERGED_IDS), texts=None)
    assert "#15" in lines[1]
    assert "#20" in lines[2]
    assert lines[4] == "reference text  ·the·cat·sat·on·a·mat.⏎·the·dog·ran.</s>"
    assert lines[5] == "candidate text  ·the·cat·sat·on·a·dog·ran.⏎⏎⏎"
    assert lines[6].index("^") == lines[4].index("mat")


def test_texts_that_are_equal_though_ids_differ() -> None:
    same = replace(case(ARM, 0, output_ids=DIVERGED_IDS), output_text="same", reference_text="same")
    assert _lines(same, texts=None)[-1] == "the texts are equal; only the ids differ"


def test_a_long_text_is_cut_on_both_sides() -> None:
    one = replace(
        case(ARM, 0, output_ids=DIVERGED_IDS), reference_text="x" * 5000 + "a" * 5000, output_text="x" * 5000 + "b" * 9
    )
    reference, candidate, mark = _lines(one, texts=None)[4:]
    assert reference.startswith("reference text  …xxx")
    assert reference.endswith("aaa…")
    assert candidate.endswith("xbbbbbbbbb")
    assert reference[mark.index("^")] == "a"
    assert len(reference) == 78


def test_ascii_console_gets_ascii() -> None:
    one = case(ARM, 0, reference_ids=tuple(range(30, 41)), output_ids=tuple(range(31, 41)), texts=HOSTILE_TEXTS)
    for texts in (HOSTILE_TEXTS, None):
        assert all(line.isascii() for line in _lines(one, texts=texts, symbols=ASCII))


def test_ids_near_are_those_that_a_diff_shows() -> None:
    ids = tuple(range(100, 200))
    one = case(ARM, 0, reference_ids=ids, output_ids=(*ids[:50], 7, *ids[51:]))
    assert ids_near(one) == {*range(142, 159), 7}
    assert ids_near(case(ARM, 0)) == frozenset()


@given(
    reference_ids=st.lists(st.sampled_from(sorted(HOSTILE_TEXTS)), max_size=30),
    output_ids=st.lists(st.sampled_from(sorted(HOSTILE_TEXTS)), max_size=30),
    width=st.integers(38, 200),
    knows_texts=st.booleans(),
)
@settings(derandomize=True, max_examples=200, deadline=None)
def test_every_line_fits_and_shows_the_divergence(reference_ids, output_ids, width, knows_texts) -> None:
    one = case(ARM, 0, reference_ids=tuple(reference_ids), output_ids=tuple(output_ids), texts=HOSTILE_TEXTS)
    lines = _lines(one, texts=HOSTILE_TEXTS if knows_texts else None, width=width)
    assert all(cell_len(line) <= width for line in lines)
    assert bool(lines) == (reference_ids != output_ids)
    if lines:
        assert str(one.first_divergence.position) in lines[0].split()
        assert set(lines[3].strip()) == {"^"}
