r"""Text that others wrote, made safe and visible for a terminal.

What a model generates is hostile: it may hold escape sequences that move the cursor, controls that turn the reading
direction, or characters that nobody sees. `visible` writes all of those out as `\u{...}`, so that a reader sees what is
there and a terminal only ever receives characters to draw. Square brackets stay: wrap the result in `rich.text.Text`,
which is never parsed as markup.

Escaping is unambiguous: different texts stay different, since a backslash and the characters that stand for white space
are themselves written out.
"""

from __future__ import annotations

from unicodedata import category, combining

from rich.cells import cell_len, chop_cells

SPACE_MARK = "·"
NEWLINE_MARK = "⏎"
TAB_MARK = "→"

MOST_MARKS = 4
"""Combining marks kept on one character; more only pile up over the neighbouring lines."""

_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
"""Controls, formats (bidi, zero width), unassigned, private, surrogates, separators: not drawn, or drawn differently
by every terminal. The space itself is dealt with before."""

_UNSEEN_RANGES = (
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),  # Khmer inherent vowels
    (0x180B, 0x180F),  # Mongolian selectors
    (0x2800, 0x2800),  # blank Braille pattern
    (0x3164, 0x3164),  # Hangul filler
    (0xFE00, 0xFE0F),  # variation selectors, which change widths on some terminals
    (0xFFA0, 0xFFA0),  # half-width Hangul filler
    (0xE0100, 0xE01EF),  # variation selectors
)
"""Default-ignorable or blank characters of other categories (Unicode 16, DerivedCoreProperties)."""


def visible(text: str, *, marks_spaces: bool = False, ascii_only: bool = False) -> str:
    r"""Return `text` as one line without any control, format or invisible character.

    Newlines and tabs become `⏎` and `→`, and with `marks_spaces` spaces become `·`; with `ascii_only` they become `\n`,
    `\t` and `\s`, and every other character outside ASCII is escaped too. A backslash is doubled, and a character that
    the marks use is escaped, so the result says exactly what the text was.
    """
    pieces: list[str] = []
    marks = MOST_MARKS  # a mark that starts the text has nothing to stand on
    for character in text:
        is_mark = category(character) in {"Mn", "Mc", "Me"} or combining(character) > 0
        marks = marks + 1 if is_mark else 0
        if is_mark and marks > MOST_MARKS:
            pieces.append(_escape(character))
        else:
            pieces.append(_visible_character(character, marks_spaces=marks_spaces, ascii_only=ascii_only))
    return "".join(pieces)


def shorten(text: str, cells: int, *, ellipsis: str = "…") -> str:
    """Return `text` cut at its end to at most `cells` terminal cells, `ellipsis` included."""
    if cell_len(text) <= cells:
        return text
    room = cells - cell_len(ellipsis)
    return (chop_cells(text, room)[0] if room > 0 else "") + ellipsis


def shorten_start(text: str, cells: int, *, ellipsis: str = "…") -> str:
    """Return `text` cut at its start to at most `cells` terminal cells, `ellipsis` included."""
    if cell_len(text) <= cells:
        return text
    room = cells - cell_len(ellipsis)
    start = len(text)
    while start and (room := room - cell_len(text[start - 1])) >= 0:
        start -= 1
    return ellipsis + text[start:]


def _visible_character(character: str, *, marks_spaces: bool, ascii_only: bool) -> str:
    if character == " ":
        return (r"\s" if ascii_only else SPACE_MARK) if marks_spaces else character
    if character == "\n":
        return r"\n" if ascii_only else NEWLINE_MARK
    if character == "\t":
        return r"\t" if ascii_only else TAB_MARK
    if character == "\\":
        return r"\\"
    if character in {SPACE_MARK, NEWLINE_MARK, TAB_MARK} or _is_unseen(character):
        return _escape(character)
    if ascii_only and not character.isascii():
        return _escape(character)
    return character


def _is_unseen(character: str) -> bool:
    if category(character) in _UNSEEN_CATEGORIES:
        return True
    return any(first <= ord(character) <= last for first, last in _UNSEEN_RANGES)


def _escape(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"
