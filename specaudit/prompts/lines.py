"""The lines of a document, with their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specaudit.prompts.document import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line that is not blank."""

    number: int
    """Counted from 1, blank lines included, as an editor shows it."""

    text: str
    """The line without its ending (LF or CRLF); never blank."""

    where: str
    """`FILE:LINE`, for messages."""


def numbered_lines(document: Document) -> list[Line]:
    """Return the lines that are not blank; never empty, as no document is blank."""
    # Not `splitlines`, which also splits at characters that may stand inside a prompt (U+2028, form feed).
    numbered = enumerate(document.text.split("\n"), start=1)
    return [
        Line(number=number, text=text.removesuffix("\r"), where=document.where(number))
        for number, text in numbered
        if text.strip()
    ]


def line_id(number: int) -> str:
    """Return the id of a prompt whose source gives it none, such as `L17`; lines count from 1."""
    return f"L{number}"
