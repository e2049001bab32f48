"""Whether a draft speaks the target's language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.errors import ModelError

if TYPE_CHECKING:
    from specaudit.models.loaded import LoadedModel

WAY_OUT = "take a draft of the target's family, or derive one: layers:N, noisy:SCALE, stress:RATE"


def check_vocabularies(target: LoadedModel, draft: LoadedModel) -> None:
    """Refuse a draft whose ids mean something else, or may be unknown to one of the two models.

    Checkpoints of one family often pad their embeddings to different sizes, and later ones add tokens. So the sizes may
    differ, as long as

    - the tokenizers agree: no text has two ids and no id two texts (either may have tokens that the other lacks);
    - the draft can embed every id of the target's tokenizer;
    - the draft is not the wider of the two, or it could propose an id that the target cannot embed.

    A draft without a tokenizer of its own (`draft.tokenizer is target.tokenizer`) must have the target's exact size.

    Raises:
        ModelError: one of these fails; the message names both models.
    """
    where = f"--target {target.source} --draft {draft.source}"
    sizes = (
        f"{draft.vocab_size} logits in the draft '{draft.source}', {target.vocab_size} in the target '{target.source}'"
    )
    if draft.tokenizer is target.tokenizer:
        if draft.vocab_size != target.vocab_size:
            problem = f"different vocabularies, with no tokenizer to compare: {sizes}"
            raise ModelError(problem, where=where, way_out=WAY_OUT)
        return
    difference = vocabulary_difference(target.tokenizer.get_vocab(), draft.tokenizer.get_vocab())
    if difference is not None:
        names = f"the target '{target.source}' and the draft '{draft.source}'"
        raise ModelError(f"{names} have different vocabularies: {difference}", where=where, way_out=WAY_OUT)
    if draft.vocab_size > target.vocab_size:
        raise ModelError(f"the draft can propose ids unknown to the target: {sizes}", where=where, way_out=WAY_OUT)
    # Some tokenizers name ids that their own model cannot embed (Gemma 3: an image token); those do not count.
    highest_id = min(max(target.tokenizer.get_vocab().values(), default=0), target.vocab_size - 1)
    if draft.vocab_size <= highest_id:
        raise ModelError(f"the draft cannot read all the target's tokens: {sizes}", where=where, way_out=WAY_OUT)


def vocabulary_difference(target: dict[str, int], draft: dict[str, int]) -> str | None:
    """Return the first disagreement (by id) between two vocabularies (token to id), or None where they agree."""
    draft_tokens = {token_id: token for token, token_id in draft.items()}
    for token, token_id in sorted(target.items(), key=lambda item: item[1]):
        if draft.get(token, token_id) != token_id:
            return f"'{token}' is {token_id} in the target and {draft[token]} in the draft"
        if draft_tokens.get(token_id, token) != token:
            return f"id {token_id} is '{token}' in the target and '{draft_tokens[token_id]}' in the draft"
    return None
