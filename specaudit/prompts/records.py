"""JSON objects, one a line: the form that JSON Lines and SpecBench files share."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specaudit.core.errors import InputError
from specaudit.prompts.lines import read_lines

if TYPE_CHECKING:
    from pathlib import Path

    from specaudit.prompts.lines import Line

ID_FIELDS = ("question_id", "id")
"""Fields that name a prompt; the first one present counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One line's JSON object."""

    fields: dict[str, Any]
    """The object as parsed."""

    line: Line
    """The line that it stands on."""

    def prompt_id(self) -> str:
        """Return the id that the record gives, or else its line's; an InputError if it is neither text nor integer."""
        for name in ID_FIELDS:
            value = self.fields.get(name)
            if value is None:
                continue
            if isinstance(value, int) and not isinstance(value, bool):
                return str(value)
            if isinstance(value, str) and value.strip():
                return well_formed(value, where=self.line.where)
            raise InputError(
                f"field '{name}' is {shown(value)}, which cannot name a prompt",
                where=self.line.where,
                way_out="give a text or an integer, or leave it out: the prompt is then named by its line",
            )
        return self.line.prompt_id

    def category(self) -> str | None:
        """Return the record's category as text, or None where it has none."""
        value = self.fields.get("category")
        return None if value is None else str(value)


def read_records(path: Path) -> list[Record]:
    """Return the JSON objects of a file, one per line that is not blank.

    Raises:
        InputError: the file cannot be read, is not UTF-8 or is empty, or a line is not a JSON object.
    """
    return [Record(fields=_parsed(line), line=line) for line in read_lines(path)]


def well_formed(text: str, *, where: str) -> str:
    """Return `text`; an InputError where it has half of a surrogate pair, which JSON can spell and UTF-8 cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"U+{ord(text[error.start]):04X} at character {error.start + 1} is half of a surrogate pair",
            where=where,
            way_out="write the character itself, or both halves",
        ) from error
    return text


def shown(value: object) -> str:
    """Return a value as JSON, cut to what fits in a message."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:59] + "…"


def _parsed(line: Line) -> dict[str, Any]:
    way_out = "write one JSON object a line"
    try:
        value = json.loads(line.text)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg} at column {error.colno}", where=line.where, way_out=way_out) from error
    except (RecursionError, ValueError) as error:  # nested too deeply; a number of too many digits
        raise InputError(f"not usable JSON: {error}", where=line.where, way_out=way_out) from error
    if not isinstance(value, dict):
        raise InputError(f"not a JSON object but {shown(value)}", where=line.where, way_out=way_out)
    return value
