"""What a target's configuration says that greedy decoding must know: settings left out, positions available."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers import GenerationConfig

from specaudit.core.errors import UsageError
from specaudit.trace.anatomy import examine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers import PreTrainedModel

NEUTRAL_SETTINGS: dict[str, tuple[Any, ...]] = {
    "repetition_penalty": (1.0,),
    "encoder_repetition_penalty": (1.0,),
    "no_repeat_ngram_size": (0,),
    "encoder_no_repeat_ngram_size": (0,),
    "min_length": (0,),
    "min_new_tokens": (0,),
    "bad_words_ids": ([],),
    "suppress_tokens": ([],),
    "begin_suppress_tokens": ([],),
    "forced_bos_token_id": (),
    "forced_eos_token_id": (),
    "sequence_bias": ({}, []),
    "exponential_decay_length_penalty": (),
    "guidance_scale": (1, 1.0),
    "watermarking_config": (),
    "stop_strings": ([],),
}
"""Settings of a generation config that change greedy output, with the values besides None that change nothing."""

INAPPLICABLE = ("guidance_scale", "watermarking_config", "stop_strings")
"""Those of them that are no function of a prefix and its logits: they need another forward, a state or the text."""


def generation_settings(model: PreTrainedModel) -> tuple[str, ...]:
    """Return the settings of the model's generation config that change greedy output, as `name=value`.

    Greedy here is the argmax of raw logits, in the reference and in the built-in decoders alike, unless a run asks for
    `greedy_config`; sampling and beam search are never used, and their settings are not listed.
    """
    return tuple(f"{name}={value}" for name, value in _effective_settings(model).items())


def greedy_config(model: PreTrainedModel) -> GenerationConfig:
    """Return a generation config with those settings of the model's own that change greedy output, and no others.

    Raises UsageError for a setting that cannot be applied token by token.
    """
    settings = _effective_settings(model)
    impossible = next((name for name in INAPPLICABLE if name in settings), None)
    if impossible is not None:
        raise UsageError(
            f"'{impossible}' of the target's generation config cannot be applied token by token",
            where="--use-generation-config",
            way_out="leave the option out: decoders are then compared without the target's settings.",
        )
    return GenerationConfig(do_sample=False, **settings)  # type: ignore[no-untyped-call]


def _effective_settings(model: PreTrainedModel) -> dict[str, Any]:
    generation = getattr(model, "generation_config", None)
    values = {name: getattr(generation, name, None) for name in NEUTRAL_SETTINGS}
    return {name: value for name, value in values.items() if value is not None and value not in NEUTRAL_SETTINGS[name]}


def position_limit(model: PreTrainedModel) -> int | None:
    """Return the number of positions in a learned table, or None where positions are computed."""
    anatomy = examine(model)
    if not (anatomy.learned or anatomy.counted):
        return None
    limit: int = model.config.get_text_config().max_position_embeddings
    return limit


def position_notices(model: PreTrainedModel, needed: Mapping[str, int]) -> tuple[str, ...]:
    """Return what to say of prompts that take a model with computed positions beyond those that it was made for.

    `needed` has the positions that each prompt needs, by its identifier. Such a model computes on, and a comparison
    with it holds; a learned table has no such positions, see `position_limit`.
    """
    limit = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if not isinstance(limit, int) or position_limit(model) is not None:
        return ()
    beyond = {prompt_id: positions for prompt_id, positions in needed.items() if positions > limit}
    if not beyond:
        return ()
    first = next(iter(beyond))
    who = f"prompt '{first}' needs" if len(beyond) == 1 else f"prompt '{first}' and {len(beyond) - 1} more need up to"
    return (
        f"{who} {max(beyond.values())} positions, the target was made for {limit}: "
        f"the comparison holds, the text may be poor",
    )
