"""Records: the named fields that a line of JSON, an item of an array or a row of a table gives."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from specaudit.core.errors import InputError

ID_FIELDS = ("question_id", "id")
"""Fields that name a prompt; the first one present counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a source says about one prompt."""

    fields: dict[str, Any]
    """Values by name, as parsed."""

    where: str
    """`FILE:LINE` where it begins, for messages."""

    fallback_id: str
    """Id for a record that gives none: its line (`L17`), or its place in an array (`N17`), both counted from 1."""

    def prompt_id(self) -> str:
        """Return the id that the record gives, or else its place; an InputError if it is neither text nor integer."""
        for name in ID_FIELDS:
            if self.fields.get(name) is not None:
                return self._label(
                    name, "give a text or an integer, or leave it out: the prompt is then named by its place"
                )
        return self.fallback_id

    def category(self) -> str | None:
        """Return the record's category, or None where it has none or an empty one; an InputError as for the id."""
        if self.fields.get("category") in (None, ""):
            return None
        return self._label("category", "give a text, or leave it out")

    def _label(self, name: str, way_out: str) -> str:
        value = self.fields[name]
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value.strip():
            return well_formed(value, where=self.where)
        noun = "category" if name == "category" else "prompt"
        raise InputError(
            f"field '{name}' is {shown(value)}, which cannot name a {noun}", where=self.where, way_out=way_out
        )


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
