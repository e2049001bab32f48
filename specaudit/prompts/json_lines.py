"""JSON Lines: one object a line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from specaudit.core.errors import InputError
from specaudit.prompts.lines import line_id, numbered_lines
from specaudit.prompts.records import Record, shown

if TYPE_CHECKING:
    from specaudit.prompts.document import Document
    from specaudit.prompts.lines import Line


def json_lines_records(document: Document) -> list[Record]:
    """Return one record per line that is not blank; an InputError where a line is not a JSON object."""
    return [
        Record(fields=_parsed(line), where=line.where, fallback_id=line_id(line.number))
        for line in numbered_lines(document)
    ]


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
