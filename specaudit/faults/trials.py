"""Trials: the prompts that a fault is tried on, and what the target makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specaudit.decoders.drafting import StressDraft
from specaudit.faults.authority import uncached_greedy, until_eos
from specaudit.faults.fault import End
from specaudit.faults.moments import ROW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import PreTrainedModel

NEW_TOKENS, DRAFT_TOKENS = 16, 3
"""Budget of a row, and proposals a round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A batch for a decoder, with what it should return."""

    prompts: tuple[tuple[int, ...], ...]
    """Token ids of each prompt."""

    continuations: tuple[tuple[int, ...], ...]
    """The target's own greedy continuation of each prompt, past any end of sequence: uncached, in the target's dtype."""

    eos_token_ids: frozenset[int]
    """Ids that end a row; may be empty."""

    pad_token_id: int
    """Id that fills rows up; no end of sequence."""

    vocabulary_size: int
    """Width of the logits."""

    @property
    def expected(self) -> list[list[int]]:
        """Return the outputs of a correct decoder."""
        return [until_eos(tokens, self.eos_token_ids) for tokens in self.continuations]

    def draft(self, replaced: float, *, seed: int) -> StressDraft:
        """Return a draft that proposes the continuations, a share of the tokens replaced."""
        references = dict(zip(self.prompts, self.continuations, strict=True))
        return StressDraft(references, rate=replaced, seed=seed, vocabulary_size=self.vocabulary_size)


def make_trials(
    model: PreTrainedModel, prompts: Sequence[Sequence[int]], *, vocabulary_size: int, pad_token_id: int | None
) -> dict[End, Trial | None]:
    """Return a trial for each place of an end of sequence; None where the target's outputs offer none.

    The end of sequence of a trial is a token chosen for it: decoders are told which ids end a row. So is padding where
    None is given: a token that stands in no prompt and no output, and not token 0, whose embedding may be zero.
    """
    kept = tuple(tuple(prompt) for prompt in prompts)
    continuations = tuple(tuple(uncached_greedy(model, prompt, max_new_tokens=NEW_TOKENS)) for prompt in kept)

    if pad_token_id is None:
        used = {token for ids in (*kept, *continuations) for token in ids}
        pad_token_id = next((token for token in range(1, vocabulary_size) if token not in used), 1)

    def trial(eos: int | None) -> Trial:
        return Trial(
            prompts=kept,
            continuations=continuations,
            eos_token_ids=frozenset() if eos is None else frozenset({eos}),
            pad_token_id=pad_token_id,
            vocabulary_size=vocabulary_size,
        )

    inside = _inside_a_block(continuations, pad_token_id)
    in_prompt = _in_prompt_alone(kept, continuations, pad_token_id)
    return {
        End.NOWHERE: trial(None),
        End.IN_OUTPUT: None if inside is None else trial(inside),
        End.IN_PROMPT: None if in_prompt is None else trial(in_prompt),
    }


def _inside_a_block(continuations: Sequence[Sequence[int]], pad_token_id: int) -> int | None:
    """Return a token that ends some row inside a round of accepted proposals, and not every row at once.

    With all proposals accepted the prefill gives 1 token and each round K + 1.
    """
    for output in continuations:
        for place, token in enumerate(output[: NEW_TOKENS // 2]):
            is_first = token not in output[:place]
            is_inside = place > 0 and (place - 1) % (DRAFT_TOKENS + 1) < DRAFT_TOKENS - 1
            has_others = any(token not in other[: place + DRAFT_TOKENS + 1] for other in continuations)
            if is_first and is_inside and has_others and token != pad_token_id:
                return token
    return None


def _in_prompt_alone(
    prompts: Sequence[Sequence[int]], continuations: Sequence[Sequence[int]], pad_token_id: int
) -> int | None:
    return next(
        (
            token
            for token in prompts[ROW]
            if all(token not in output for output in continuations) and token != pad_token_id
        ),
        None,
    )
