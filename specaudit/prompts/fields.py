"""From records to prompts: a text or a chat in a named field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specaudit.core.errors import InputError, nearest
from specaudit.core.prompt import Prompt
from specaudit.prompts.chat import read_chat
from specaudit.prompts.gold import check_gold_field, gold_answer
from specaudit.prompts.records import shown, well_formed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.prompts.records import Record

TEXT_FIELDS = ("prompt", "text")
"""Fields tried for a prompt in a table; the first one present counts."""

DEFAULT_FIELDS = (*TEXT_FIELDS, "messages", "conversations")
"""Fields tried for a prompt in JSON; the first one present counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldNames:
    """Fields that the user named."""

    prompt: str | None = None
    """The field that holds the prompt, or None for the defaults."""

    gold: str | None = None
    """The field that holds the gold answer, or None for the defaults."""


def record_prompts(
    records: Sequence[Record], names: FieldNames, *, default_fields: Sequence[str] = DEFAULT_FIELDS
) -> list[Prompt]:
    """Return one prompt per record, from the named field or the first of `default_fields` that it has.

    A string is a plain text; a list of turns is a chat, whatever the field is called. A chat that ends with the
    assistant's turn is asked without it, and that turn is its gold answer unless a field gives one.

    Raises:
        InputError: a record lacks the field, or holds an empty text or something else than a text or a chat.
    """
    check_gold_field(records, names.gold)
    return [_prompt(record, names, default_fields) for record in records]


def _prompt(record: Record, names: FieldNames, default_fields: Sequence[str]) -> Prompt:
    field = _prompt_field(record, names.prompt, default_fields)
    value = record.fields[field]
    prompt_id, category = record.prompt_id(), record.category()
    gold = gold_answer(record, field=names.gold, prompt_field=field)
    if isinstance(value, str) and value:
        text = well_formed(value, where=record.where)
        return Prompt(prompt_id=prompt_id, text=text, category=category, gold=gold, source=record.where)
    if isinstance(value, list) and value:
        chat = read_chat(value, where=record.where)
        return Prompt(
            prompt_id=prompt_id,
            messages=chat.messages,
            category=category,
            gold=gold or chat.answer or None,
            source=record.where,
        )
    is_empty = value in ("", [])
    raise InputError(
        f"field '{field}' is empty" if is_empty else f"field '{field}' is neither a text nor a chat: {shown(value)}",
        where=record.where,
        way_out='write a text, or a chat such as [{"role": "user", "content": "Hello"}]',
    )


def _prompt_field(record: Record, field: str | None, default_fields: Sequence[str]) -> str:
    wanted = default_fields if field is None else (field,)
    for name in wanted:
        if name in record.fields:
            return name
    tried = " or ".join(f"'{name}'" for name in wanted)
    found = ", ".join(record.fields) or "none"
    if field is None:
        way_out = "name the field that holds the prompt with --field"
    else:
        way_out = nearest(field, record.fields) or "add the field"
    raise InputError(f"no field {tried}; fields found: {found}", where=record.where, way_out=way_out)
