"""Which ids end a text and which fills a row up."""

from __future__ import annotations

from typing import Any


def eos_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """Return the ids at which `model.generate` would stop, or else those that the tokenizer or configuration name.

    The first of the three that names any counts: the generation config (an id or a list), the tokenizer, the model's
    configuration. Empty where none does.
    """
    generation_config = getattr(model, "generation_config", None)
    named = (getattr(place, "eos_token_id", None) for place in (generation_config, tokenizer, text_config(model)))
    return next((ids for ids in map(_as_ids, named) if ids), frozenset())


def pad_id(model: Any, tokenizer: Any, *, eos_token_ids: frozenset[int], vocab_size: int) -> int:
    """Return an id to fill rows up with: the tokenizer's, else the generation config's, else the lowest EOS, else 0.

    An id that the model has no embedding for is passed over. The id may well be that of EOS or BOS, and padding may
    occur inside a text, so nothing may be concluded from seeing it: padding is known by length.
    """
    generation_config = getattr(model, "generation_config", None)
    candidates = [getattr(place, "pad_token_id", None) for place in (tokenizer, generation_config)]
    for candidate in [*candidates, *sorted(eos_token_ids)]:
        if isinstance(candidate, int) and 0 <= candidate < vocab_size:
            return candidate
    return 0


def text_config(model: Any) -> Any:
    """Return the part of a model's configuration that describes its language model."""
    return model.config.get_text_config()


def _as_ids(named: object) -> frozenset[int]:
    ids = named if isinstance(named, list | tuple) else [named]
    return frozenset(token_id for token_id in ids if isinstance(token_id, int) and token_id >= 0)
