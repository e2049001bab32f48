"""No text from outside may do more than be drawn, and no two texts may look the same."""

from __future__ import annotations

import re
from unicodedata import category

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from specaudit.report.visible_text import shorten, shorten_start, visible

ANY_TEXT = st.text(
    st.one_of(
        st.characters(),  # surrogates included
        st.sampled_from(
            "\x1b\x07\r\n\t\x00\x9b\x7f\u202e\u2066\u200b\u200d\ufeff\u2028\xad\xa0 \\·⏎→[]{}u\u0301漢👍🏽"
        ),
    ),
    max_size=60,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("\x1b[31mred", r"\u{1b}[31mred"),
        ("\x07\r\x00\x7f\x9b", r"\u{7}\u{d}\u{0}\u{7f}\u{9b}"),
        ("a\nb\tc", "a⏎b→c"),
        ("\u202egnp.exe", r"\u{202e}gnp.exe"),
        ("zero\u200bwidth\ufeff", r"zero\u{200b}width\u{feff}"),
        ("soft\xadhyphen", r"soft\u{ad}hyphen"),
        ("no\xa0break\u2028", r"no\u{a0}break\u{2028}"),
        ("back\\slash", r"back\\slash"),
        ("·⏎→", r"\u{b7}\u{23ce}\u{2192}"),
        ("\ud800", r"\u{d800}"),
        ("\ue000\U000e0041", r"\u{e000}\u{e0041}"),
        ("\u0301alone", r"\u{301}alone"),
        ("e\u0301", "e\u0301"),
        ("z" + "\u0301" * 6, "z" + "\u0301" * 4 + r"\u{301}\u{301}"),
        ("[red]x[/red] :smile:", "[red]x[/red] :smile:"),
        ("שלום 漢字 👍🏽", "שלום 漢字 👍🏽"),
        ("\U0001f468\u200d\U0001f469 \u2764\ufe0f", "\U0001f468\\u{200d}\U0001f469 \u2764\\u{fe0f}"),
        ("\u3164", r"\u{3164}"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_spaces_are_marked_where_it_matters() -> None:
    assert visible(" a  b", marks_spaces=True) == "·a··b"


def test_ascii_only() -> None:
    assert visible(" é\n\t漢\x1b", marks_spaces=True, ascii_only=True) == r"\s\u{e9}\n\t\u{6f22}\u{1b}"


@given(text=ANY_TEXT, marks_spaces=st.booleans(), ascii_only=st.booleans())
@settings(derandomize=True, max_examples=400, deadline=None)
def test_nothing_that_acts_gets_through(text: str, marks_spaces: bool, ascii_only: bool) -> None:
    shown = visible(text, marks_spaces=marks_spaces, ascii_only=ascii_only)
    assert not {category(character) for character in shown} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert not shown.startswith(tuple(chr(code) for code in range(0x300, 0x370)))
    assert set(re.findall(r"\s", shown)) <= {" "}
    assert shown.isascii() or not ascii_only
    shown.encode("utf-8")


@given(text=ANY_TEXT, marks_spaces=st.booleans(), ascii_only=st.booleans())
@settings(derandomize=True, max_examples=400, deadline=None)
def test_what_is_shown_says_exactly_what_the_text_was(text: str, marks_spaces: bool, ascii_only: bool) -> None:
    assert _hidden_again(visible(text, marks_spaces=marks_spaces, ascii_only=ascii_only)) == text


@given(text=ANY_TEXT, cells=st.integers(4, 30))
@settings(derandomize=True, max_examples=200, deadline=None)
def test_shortened_text_fits(text: str, cells: int) -> None:
    shown = visible(text)
    for short in (shorten(shown, cells), shorten_start(shown, cells)):
        assert cell_len(short) <= cells
        assert short == shown or "…" in short


def test_shorten_keeps_the_end_that_is_asked_for() -> None:
    assert shorten("abcdefgh", 5) == "abcd…"
    assert shorten("漢字漢字", 6) == "漢字…"
    assert shorten_start("abcdefgh", 5) == "…efgh"
    assert shorten("abcdefgh", 5, ellipsis="...") == "ab..."
    assert shorten("fits", 4) == "fits"


def _hidden_again(shown: str) -> str:
    """Undo `visible`, by its description alone."""
    meanings = {"·": " ", "⏎": "\n", "→": "\t", r"\n": "\n", r"\t": "\t", r"\s": " ", r"\\": "\\"}

    def meaning(match: re.Match[str]) -> str:
        return chr(int(match["code"], 16)) if match["code"] else meanings[match[0]]

    return re.sub(r"\\u\{(?P<code>[0-9a-f]+)\}|\\[nts\\]|[·⏎→]", meaning, shown)
