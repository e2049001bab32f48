"""What a target's configuration says that greedy decoding must know: settings left out, positions available."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specaudit.trace.anatomy import examine

if TYPE_CHECKING:
    from transformers import PreTrainedModel

NEUTRAL_SETTINGS: dict[str, Any] = {
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "min_length": 0,
    "min_new_tokens": None,
    "bad_words_ids": None,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
    "forced_bos_token_id": None,
    "forced_eos_token_id": None,
    "sequence_bias": None,
    "exponential_decay_length_penalty": None,
    "guidance_scale": None,
    "stop_strings": None,
}
"""Settings of a generation config that change greedy output, with the values that change nothing."""


def ignored_settings(model: PreTrainedModel) -> tuple[str, ...]:
    """Return the settings of the model's generation config that change greedy output and are left out, as `name=value`.

    Greedy here is the argmax of raw logits, in the reference and in the built-in decoders alike.
    """
    generation = getattr(model, "generation_config", None)
    found = []
    for name, neutral in NEUTRAL_SETTINGS.items():
        value = getattr(generation, name, None)
        if value is not None and value != neutral and value != []:
            found.append(f"{name}={value}")
    return tuple(found)


def position_limit(model: PreTrainedModel) -> int | None:
    """Return the number of positions in a learned table, or None where positions are computed."""
    anatomy = examine(model)
    if not (anatomy.learned or anatomy.counted):
        return None
    limit: int = model.config.get_text_config().max_position_embeddings
    return limit
