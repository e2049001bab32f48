"""The text of a prompt file or of standard input."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specaudit.core.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

FORMS = "a .txt, .jsonl, .json, .csv or .tsv file, specbench:FILE, - for standard input, or 'bundled'"
"""What `--prompts` takes, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A text that holds prompts; never blank."""

    name: str
    """What messages call it: the path as given, or `standard input`."""

    text: str
    """Content without a byte order mark, line endings as they were."""

    def where(self, line: int) -> str:
        """Return `NAME:LINE` for messages; lines count from 1."""
        return f"{self.name}:{line}"


def read_document(path: Path) -> Document:
    """Return the content of a UTF-8 file.

    Raises:
        InputError: the file is missing, unreadable, blank or not UTF-8.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"the prompt file cannot be read: {error.strerror or error}", where=str(path), way_out=f"give {FORMS}"
        ) from error
    document = _decoded(content, str(path))
    if not document.text.strip():
        raise InputError("the prompt file is empty", where=str(path), way_out="add at least one prompt")
    return document


def read_standard_input() -> Document:
    """Return what is piped in, up to its end, as UTF-8 whatever the locale says.

    Raises:
        InputError: standard input is closed, blank or not UTF-8.
    """
    where, way_out = "--prompts -", "pipe at least one prompt in, one a line"
    if sys.stdin is None:  # as after `<&-`
        raise InputError("standard input is closed", where=where, way_out=way_out)
    document = _decoded(sys.stdin.buffer.read(), "standard input")
    if not document.text.strip():
        raise InputError("standard input is empty", where=where, way_out=way_out)
    return document


def _decoded(content: bytes, name: str) -> Document:
    try:
        return Document(name=name, text=content.decode("utf-8").removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"byte 0x{content[error.start]:02x} is not UTF-8", where=f"{name}:{number}", way_out="save it as UTF-8"
        ) from error
