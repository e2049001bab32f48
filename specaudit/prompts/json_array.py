"""A JSON array of prompts: each an object, a chat (a list of turns) or a text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specaudit.core.errors import InputError
from specaudit.prompts.records import Record, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from specaudit.prompts.document import Document

WAY_OUT = 'write an array of chats: [{"messages": [{"role": "user", "content": "Hello"}]}]'


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    value: Any
    line: int
    """Line on which it begins, counted from 1."""


def json_array_records(document: Document) -> list[Record]:
    """Return one record per item of the array; an item without fields is the field `messages` or `text`.

    Items are named by their place, as one line may hold several.

    Raises:
        InputError: the document is not a JSON array, the array is empty, or an item is something else.
    """
    records = [_record(item, place, document) for place, item in enumerate(_items(document), start=1)]
    if not records:
        raise InputError("the array is empty", where=document.where(1), way_out="add at least one prompt")
    return records


def _record(item: _Item, place: int, document: Document) -> Record:
    where = f"{document.where(item.line)} (item {place})"
    match item.value:
        case dict():
            fields = item.value
        case list():
            fields = {"messages": item.value}
        case str():
            fields = {"text": item.value}
        case _:
            raise InputError(f"neither an object nor a chat but {shown(item.value)}", where=where, way_out=WAY_OUT)
    return Record(fields=fields, where=where, fallback_id=f"N{place}")


def _items(document: Document) -> Iterator[_Item]:
    """Yield the items with their lines, which `json.loads` on the whole would not tell."""
    try:
        yield from _scanned(document.text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"not a JSON array: {error.msg} at column {error.colno}",
            where=document.where(error.lineno),
            way_out=WAY_OUT,
        ) from error
    except (RecursionError, ValueError) as error:  # nested too deeply; a number of too many digits
        raise InputError(f"not usable JSON: {error}", where=document.name, way_out=WAY_OUT) from error


def _scanned(text: str) -> Iterator[_Item]:
    decoder = json.JSONDecoder()
    position = _expected("[", text, _after_space(text, 0))
    counted, line = 0, 1
    is_first = True
    while not text.startswith("]", position):
        if not is_first:
            position = _expected(",", text, position)
        line += text.count("\n", counted, position)
        counted = position
        value, end = decoder.raw_decode(text, position)
        yield _Item(value=value, line=line)
        position, is_first = _after_space(text, end), False
    end = _after_space(text, position + 1)
    if end < len(text):
        raise json.JSONDecodeError("Extra data", text, end)


def _expected(mark: str, text: str, position: int) -> int:
    """Return the position of what follows `mark`, which must stand at `position`."""
    if not text.startswith(mark, position):
        raise json.JSONDecodeError(f"Expecting '{mark}'", text, position)
    return _after_space(text, position + 1)


def _after_space(text: str, position: int) -> int:
    space = re.compile(r"[ \t\n\r]*").match(text, position)
    return position if space is None else space.end()
