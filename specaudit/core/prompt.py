"""A prompt as a user gave it, before any tokenizer has seen it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a chat."""

    role: str
    """`system`, `user` or `assistant`."""

    content: str
    """Text of the turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One prompt of a set: either plain text or chat messages, never both."""

    prompt_id: str
    """Identifier, unique in its set, stable between runs (from the source where it has one, else its place there)."""

    text: str | None = None
    """Plain text, or None for a chat."""

    messages: tuple[Message, ...] = ()
    """Turns of a chat, rendered through the tokenizer's chat template; empty for plain text."""

    follow_up: str | None = None
    """Second question, asked after the reference's own answer to `text`; None where the prompt is asked as it stands."""

    category: str | None = None
    """Category named by the source, or None."""

    gold: str | None = None
    """Answer named by the source, for text metrics only: no verdict rests on it. None where the source has none."""

    source: str
    """Where it came from, for messages: `FILE:LINE` or `bundled`."""
