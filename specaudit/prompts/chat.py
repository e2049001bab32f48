"""Chats: lists of turns, with `role` and `content`, or with `from` and `value` as in ShareGPT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specaudit.core.errors import InputError, nearest
from specaudit.core.prompt import Message
from specaudit.prompts.records import shown, well_formed

ROLES = {"system": "system", "user": "user", "assistant": "assistant"}
"""Roles that `role` may name."""

SPEAKERS = ROLES | {"human": "user", "gpt": "assistant"}
"""Roles by what `from` may say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A chat up to the turn that the model is to write."""

    messages: tuple[Message, ...]
    """The turns, never empty; the last one is not the assistant's."""

    answer: str | None
    """The assistant's turn that the source has behind them, or None."""


def read_chat(turns: list[Any], *, where: str) -> Chat:
    """Return the chat that `turns` spell; an assistant's turn at the end is taken as the answer.

    Raises:
        InputError: a turn is malformed, or there is none before the answer.
    """
    messages = [_message(turn, number, where) for number, turn in enumerate(turns, start=1)]
    answer = messages.pop().content if messages and messages[-1].role == "assistant" else None
    if not messages or messages[-1].role == "assistant":
        raise InputError(
            "the chat has no turn to answer before the assistant's last one",
            where=where,
            way_out="let a turn of the user come before it",
        )
    return Chat(messages=tuple(messages), answer=answer)


def _message(turn: Any, number: int, where: str) -> Message:
    fields = turn if isinstance(turn, dict) else {}
    is_sharegpt = "role" not in fields and "from" in fields
    speaker, content = (fields.get(name) for name in (("from", "value") if is_sharegpt else ("role", "content")))
    if not isinstance(speaker, str) or not isinstance(content, str):
        raise InputError(
            f"turn {number} of the chat needs a text 'role' and a text 'content': {shown(turn)}",
            where=where,
            way_out='write each turn as {"role": "user", "content": "Hello"}',
        )
    roles = SPEAKERS if is_sharegpt else ROLES
    if speaker not in roles:
        raise InputError(f"turn {number} has an unknown role '{speaker}'", where=where, way_out=nearest(speaker, roles))
    return Message(role=roles[speaker], content=well_formed(content, where=where))
