"""JSON Lines files: a text or a chat in a named field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specaudit.core.errors import InputError, nearest
from specaudit.core.prompt import Message, Prompt
from specaudit.prompts.records import shown, well_formed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.prompts.records import Record

DEFAULT_FIELDS = ("prompt", "text", "messages")
"""Fields tried where none is named; the first one present counts."""

ROLES = ("system", "user", "assistant")
"""Roles that a chat's turns may have."""


def jsonl_prompts(records: Sequence[Record], *, field: str | None = None) -> list[Prompt]:
    """Return one prompt per record: field `field`, or the first of `prompt`, `text`, `messages` that it has.

    A string is a plain text; a list of objects with `role` and `content` is a chat, whatever the field is called.

    Raises:
        InputError: a record lacks the field, or holds an empty text or something else than a text or a chat.
    """
    return [_prompt(record, field) for record in records]


def _prompt(record: Record, field: str | None) -> Prompt:
    where = record.line.where
    name = _field_name(record, field)
    value = record.fields[name]
    text: str | None = None
    messages: tuple[Message, ...] = ()
    if isinstance(value, str) and value:
        text = well_formed(value, where=where)
    elif isinstance(value, list) and value:
        messages = tuple(_message(turn, number, where) for number, turn in enumerate(value, start=1))
    else:
        is_empty = value in ("", [])
        raise InputError(
            f"field '{name}' is empty" if is_empty else f"field '{name}' is neither a text nor a chat: {shown(value)}",
            where=where,
            way_out='write a text, or a chat such as [{"role": "user", "content": "Hello"}]',
        )
    return Prompt(prompt_id=record.prompt_id(), text=text, messages=messages, category=record.category(), source=where)


def _field_name(record: Record, field: str | None) -> str:
    wanted = DEFAULT_FIELDS if field is None else (field,)
    for name in wanted:
        if name in record.fields:
            return name
    tried = " or ".join(f"'{name}'" for name in wanted)
    found = ", ".join(record.fields) or "none"
    if field is None:
        way_out = "name the field that holds the prompt with --field"
    else:
        way_out = nearest(field, record.fields) or "add the field"
    raise InputError(
        f"no field {tried}; fields found: {found}",
        where=record.line.where,
        way_out=way_out,
    )


def _message(turn: Any, number: int, where: str) -> Message:
    role, content = (turn.get("role"), turn.get("content")) if isinstance(turn, dict) else (None, None)
    if not isinstance(role, str) or not isinstance(content, str):
        raise InputError(
            f"turn {number} of the chat needs a text 'role' and a text 'content': {shown(turn)}",
            where=where,
            way_out='write each turn as {"role": "user", "content": "Hello"}',
        )
    if role not in ROLES:
        raise InputError(f"turn {number} has an unknown role '{role}'", where=where, way_out=nearest(role, ROLES))
    return Message(role=role, content=well_formed(content, where=where))
