"""Gold answers: what the source of a prompt gives as the right answer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from specaudit.core.errors import InputError, nearest
from specaudit.prompts.records import shown, well_formed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.prompts.records import Record

DEFAULT_FIELDS = ("gold", "answer", "reference")
"""Fields tried where none is named; the first one that holds an answer counts."""


def check_gold_field(records: Sequence[Record], field: str | None) -> None:
    """Raise InputError where a field is named that no record has; one that only some have is as it should be."""
    if field is None or any(field in record.fields for record in records):
        return
    known = {name for record in records for name in record.fields}
    raise InputError(
        f"no record has the field '{field}'",
        where="--gold-field",
        way_out=nearest(field, known) or "name a field that holds the answer",
    )


def gold_answer(
    record: Record, *, field: str | None, prompt_field: str | None = None, turn: int | None = None
) -> str | None:
    """Return the answer in `field`, or in the first of `gold`, `answer`, `reference` that holds one; else None.

    A list is the texts of one answer, joined with line breaks. What a field that nobody named holds besides texts,
    numbers and lists of them is left alone: it need not be an answer.

    Args:
        record: where to look.
        field: the field that the user named, or None.
        prompt_field: the field that holds the prompt, which is no answer.
        turn: take entry `turn` (from 1) of a list, as SpecBench's lists run beside its turns; None for the whole.

    Raises:
        InputError: the named field holds something else than an answer.
    """
    for name in DEFAULT_FIELDS if field is None else (field,):
        value = None if name == prompt_field else record.fields.get(name)
        if turn is not None and isinstance(value, list):
            value = value[turn - 1] if len(value) >= turn else None
        if value is None or value == "":
            continue
        if _is_answer(value):
            return well_formed(_text(value), where=record.where) or None
        if field is not None:
            raise InputError(
                f"field '{field}' is no answer: {shown(value)}",
                where=record.where,
                way_out="write a text, a number, or a list of them",
            )
    return None


def _is_answer(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_answer(part) for part in value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return isinstance(value, str) or is_number


def _text(value: Any) -> str:
    return "\n".join(_text(part) for part in value) if isinstance(value, list) else str(value)
