"""Errors that a user can act on.

Each says what is wrong, where, and the way out. One place (`specaudit.cli.main`) catches them, prints the three parts
and exits with `exit_code`; `--debug` shows the traceback instead.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class SpecauditError(Exception):
    """Base of every error that is reported without a traceback."""

    exit_code = 2
    """Exit code of the command that the error ends (2: usage, configuration or input)."""

    def __init__(self, message: str, *, where: str | None = None, way_out: str | None = None) -> None:
        """Describe a problem: `message` what, `where` the file, line or option, `way_out` what to do about it."""
        super().__init__(message)
        self.message = message
        self.where = where
        self.way_out = way_out


class UsageError(SpecauditError):
    """Options that are wrong or do not go together."""


class InputError(SpecauditError):
    """A prompt file, recording or run directory that cannot be used."""


class ModelError(SpecauditError):
    """A model or tokenizer that cannot be loaded or used."""


class DecoderError(SpecauditError):
    """A decoder that cannot be found or called. A decoder that fails while decoding is `unmeasured`, not this."""


def printable(text: str) -> str:
    """Return `text` on one line, with every character that a terminal would obey instead of drawing written out."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


MOST_NAMES = 20
"""Known names listed where none is close."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return a way out naming the known name closest to `name`, or listing all of them when none is close."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    if not names:
        return None
    shown = names if len(names) <= MOST_NAMES else [*names[:MOST_NAMES], f"... ({len(names)} in all)"]
    return "known: " + ", ".join(shown)
