"""What a tokenizer knows of its ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specaudit.text.output_pair import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence


def vocabulary_of(tokenizer: Any, *, eos_ids: frozenset[int], pad_id: int) -> Vocabulary:
    """Return the vocabulary of a transformers tokenizer; `eos_ids` and `pad_id` are those in force.

    Special are the tokens that the tokenizer names by role, and those added as special, such as a chat's markers.
    """
    added = getattr(tokenizer, "added_tokens_decoder", {})
    special_ids = {*tokenizer.all_special_ids, *(token_id for token_id, token in added.items() if token.special)}

    def text_of(ids: Sequence[int]) -> str:
        return str(tokenizer.decode(list(ids), skip_special_tokens=False))

    def plain_text_of(ids: Sequence[int]) -> str:
        return str(tokenizer.decode(list(ids), skip_special_tokens=True))

    return Vocabulary(
        eos_ids=eos_ids,
        pad_id=pad_id,
        special_ids=frozenset(special_ids),
        text_of=text_of,
        plain_text_of=plain_text_of,
    )
