"""The lines of a prompt file, with their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specaudit.core.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line that is not blank."""

    number: int
    """Counted from 1, blank lines included, as an editor shows it."""

    text: str
    """The line without its ending (LF or CRLF); never blank."""

    where: str
    """`FILE:LINE`, for messages."""

    @property
    def prompt_id(self) -> str:
        """Id of a prompt whose source gives it none, such as `L17`."""
        return f"L{self.number}"


def read_lines(path: Path) -> list[Line]:
    """Return the lines of a UTF-8 file that are not blank; a byte order mark is dropped.

    Raises:
        InputError: the file is missing, unreadable, not UTF-8, or has no line that is not blank.
    """
    # Not `splitlines`, which also splits at characters that may stand inside a prompt (U+2028, form feed).
    numbered = enumerate(_decoded(path).split("\n"), start=1)
    lines = [
        Line(number=number, text=text.removesuffix("\r"), where=f"{path}:{number}")
        for number, text in numbered
        if text.strip()
    ]
    if not lines:
        raise InputError("the prompt file is empty", where=str(path), way_out="add at least one prompt")
    return lines


def _decoded(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"the prompt file cannot be read: {error.strerror or error}",
            where=str(path),
            way_out="give a .txt or .jsonl file, specbench:FILE, or leave --prompts out to use the bundled set",
        ) from error
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"byte 0x{content[error.start]:02x} is not UTF-8",
            where=f"{path}:{number}",
            way_out="save the file as UTF-8",
        ) from error
