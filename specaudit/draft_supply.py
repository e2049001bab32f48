"""The draft of a run: a model, a drafter or none, made anew for each seed that changes it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from specaudit.core.records import ModelRecord
from specaudit.decoders.drafting import StressDraft
from specaudit.decoders.ngram import NgramDraft
from specaudit.models.drafts import NgramDraft as NgramRecipe
from specaudit.models.drafts import NoisyDraft, parse_draft
from specaudit.models.drafts import StressDraft as StressRecipe
from specaudit.models.loaded import LoadedModel
from specaudit.models.noisy_draft import with_noise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from specaudit.models.loaded import ModelPair
    from specaudit.models.options import LoadOptions


class DraftSupply:
    """What decoders are handed as their draft.

    A draft that depends on the seed is kept for one seed at a time: a noisy one is as large as the target. For this
    to help, the caller must not keep the pair.
    """

    def __init__(
        self,
        pair: ModelPair,
        given: str | None,
        *,
        options: LoadOptions,
        references: Mapping[tuple[int, ...], Sequence[int]],
    ) -> None:
        """Supply the draft of `pair`, which was loaded from `given` with `options`.

        `references` maps prompts to the reference's outputs; it is read when a decoder drafts, not before.
        """
        self._target = pair.target
        self._given = given
        self._options = options
        self._references = references
        self._seed = options.seed
        self._model: Any = pair.draft.model if isinstance(pair.draft, LoadedModel) else None
        self._recipe = None if isinstance(pair.draft, LoadedModel) else pair.draft

    def for_seed(self, seed: int | None) -> Any:
        """Return the draft for a seed, or, for None, whatever there is."""
        match self._recipe:
            case StressRecipe(rate=rate):
                return StressDraft(
                    self._references,
                    rate=rate,
                    seed=self._seed if seed is None else seed,
                    vocabulary_size=self._target.vocab_size,
                )
            case NgramRecipe(size=size):
                return NgramDraft(size)
        if seed is not None and seed != self._seed:
            self._reseed(seed)
        return self._model

    def models(self) -> list[Any]:
        """Return the draft model in memory, if there is one."""
        return [] if self._model is None else [self._model]

    def _reseed(self, seed: int) -> None:
        self._seed = seed
        if self._given is None:
            return
        recipe = parse_draft(self._given, options=replace(self._options, seed=seed))
        if isinstance(recipe, NoisyDraft):
            self._model = None  # freed before the next is made
            self._model = with_noise(self._target.model, recipe)


def drafter_record(recipe: StressRecipe | NgramRecipe, *, pad_token_id: int) -> ModelRecord:
    """Return the record of a draft that is no model."""
    if isinstance(recipe, StressRecipe):
        source, what = f"stress:{recipe.rate:g}", "reference with replaced tokens"
    else:
        source, what = f"ngram:{recipe.size}", "prompt lookup"
    return ModelRecord(
        source=source,
        digest=None,
        architecture=what,
        parameters=0,
        dtype="none",
        device="none",
        attn="none",
        eos_token_ids=(),
        pad_token_id=pad_token_id,
        ignored_settings=(),
    )
