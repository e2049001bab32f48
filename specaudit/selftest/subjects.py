"""Models that the self-test is run on, in float64, with the trials for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specaudit.core.errors import InputError, UsageError, nearest
from specaudit.faults.random_models import BUILDERS, VOCABULARY, random_model
from specaudit.faults.trials import make_trials
from specaudit.models.loaded import LoadedModel
from specaudit.models.loading import load_pair
from specaudit.models.options import LoadOptions
from specaudit.models.rendering import render
from specaudit.prompts import load_prompts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from specaudit.faults.fault import End
    from specaudit.faults.trials import Trial

RANDOM_PROMPTS = ((5, 9, 11, 14, 3, 8), (7, 30, 2), (12, 9, 33, 50))
"""Prompts for random models: of different lengths, the second the shortest."""

LENGTHS = (9, 4, 6)
"""Tokens that prompts for other models are cut to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A model under test."""

    name: str
    """As the user named it."""

    model: Any
    """A transformers model in float64."""

    draft: Any
    """Its own draft model, for legal variants, or None for drafts by stress."""

    trials: dict[End, Trial | None]
    """Trials by the place of an end of sequence."""

    text_of: Callable[[Sequence[int]], str]
    """Text of token ids; of a model without a tokenizer, the ids as words."""


def check_architecture(architecture: str) -> str:
    """Return the name of a random model, given with hyphens or underscores; raise UsageError for one that is unknown."""
    name = architecture.replace("-", "_")
    if name not in BUILDERS:
        raise UsageError(
            f"unknown architecture '{architecture}'", where="--architecture", way_out=nearest(name, BUILDERS)
        )
    return name


def random_subject(architecture: str) -> Subject:
    """Return a small random model of an architecture."""
    name = check_architecture(architecture)
    model = random_model(name)
    return Subject(
        name=architecture,
        model=model,
        draft=None,
        trials=make_trials(model, RANDOM_PROMPTS, vocabulary_size=VOCABULARY, pad_token_id=None),
        text_of=lambda ids: " ".join(map(str, ids)),
    )


def loaded_subject(target: str, draft: str | None) -> Subject:
    """Load a target, and a draft where one is named or comes with it, in float64 on the processor."""
    pair = load_pair(target, draft, options=LoadOptions(dtype="float64", device="cpu"))
    loaded = pair.target
    texts = [prompt for prompt in load_prompts("bundled").prompts if not prompt.messages]
    rendered = [render(prompt, loaded.tokenizer, chat_template=False) for prompt in texts]
    prompts: list[list[int]] = []
    for prompt_ids in rendered:
        if len(prompts) < len(LENGTHS) and len(prompt_ids) >= LENGTHS[len(prompts)]:
            prompts.append(prompt_ids[-LENGTHS[len(prompts)] :])
    if len(prompts) < len(LENGTHS):
        raise InputError("the bundled prompts are too short in this tokenizer", where=target)
    return Subject(
        name=target,
        model=loaded.model,
        draft=pair.draft.model if isinstance(pair.draft, LoadedModel) else None,
        trials=make_trials(loaded.model, prompts, vocabulary_size=loaded.vocab_size, pad_token_id=loaded.pad_token_id),
        text_of=lambda ids: str(loaded.tokenizer.decode(list(ids), skip_special_tokens=True)),
    )
