"""One decoder call: what was decoded together, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specaudit.trace.records import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptCase:
    """A prompt ready to be decoded, with what the reference made of it."""

    prompt_id: str
    """Identifier in its set."""

    category: str | None
    """Category, or None."""

    gold: str | None
    """Answer that the prompt set gives, or None."""

    prompt_ids: tuple[int, ...]
    """Token ids."""

    reference_ids: tuple[int, ...]
    """Token ids that the reference generated."""

    reference_error: str | None
    """Why there is no reference, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderCall:
    """What one decoder call gave."""

    outputs: list[tuple[int, ...]] | list[str] | None
    """One output a prompt, in their order, or None where the call gave nothing usable."""

    error: str | None
    """Why it gave nothing usable, or None."""

    trace: Trace
    """What was seen inside the target."""

    seconds: float
    """Time spent in the decoder."""
