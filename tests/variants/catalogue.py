"""Which variants there are, and which architectures each is right for."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ANY_LAYOUT = (
    "no_bonus",
    "last_token_again",
    "adaptive_draft",
    "plain_loop",
    "no_cache",
    "explicit_masks",
    "reordered_rows",
    "finished_rows_kept",
    "batch_minimum",
    "prefill_one_by_one",
    "several_forwards",
    "inner_model",
    "shared_prefix",
    "expanded_rows",
    "distinct_prompts",
    "warmed_up",
)
"""Contiguous rows, or masks that count tokens: right for every architecture."""

COLUMN_LAYOUT = (
    "ragged_drafts",
    "hole_masked",
    "right_padded",
    "static_cache",
    "refilled_rows",
    "chunked_prefill",
    "sorted_rows",
    "prompt_with_drafts",
    "tree_drafts",
)
"""Padding or rejected slots between a row's tokens: wrong where a window counts columns."""

GENERATE = ("generated", "generated_static", "generated_assisted", "generated_lookup")
"""Transformers' own; assisted generation needs a draft that is a model."""

WINDOWED = ("mistral", "gemma3")
"""Architectures with a sliding window."""


def variant(name: str) -> Callable[..., list[list[int]]]:
    """Return the decoder of a variant; some belong to the self-test."""
    home = "specaudit.faults.legal" if find_spec(f"specaudit.faults.legal.{name}") else "tests.variants"
    decode: Any = import_module(f"{home}.{name}").decode
    return decode  # type: ignore[no-any-return]


def variants_for(architecture: str) -> tuple[str, ...]:
    """Return the variants that are right for an architecture and take any drafter."""
    return ANY_LAYOUT if architecture in WINDOWED else ANY_LAYOUT + COLUMN_LAYOUT
