"""Output pairs made by hand, over a vocabulary of a few words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from specaudit.text.output_pair import OutputPair, Vocabulary, Writing

if TYPE_CHECKING:
    from collections.abc import Sequence

EOS, PAD, ROLE = 2, 0, 3
WORDS = {EOS: "</s>", PAD: "<pad>", ROLE: "<|user|>", 4: " ", 5: "\n"}
"""Texts by id; every other id is a word, `w10` for id 10."""

TOKENS = Vocabulary(eos_ids=frozenset({EOS}), pad_id=PAD, special_ids=frozenset({EOS, PAD, ROLE}))


def text_of(ids: Sequence[int], texts: dict[int, str] | None = None) -> str:
    """Return the text of ids."""
    known = WORDS | (texts or {})
    return "".join(known.get(token, f" w{token}") for token in ids)


def of_ids(
    reference: Sequence[int],
    candidate: Sequence[int],
    *,
    prompt: Sequence[int] | None = None,
    vocabulary: Vocabulary = TOKENS,
    texts: dict[int, str] | None = None,
) -> OutputPair:
    """Return a pair with ids and texts."""

    def decode(ids: Sequence[int]) -> str:
        return text_of(ids, texts)

    def writing(ids: Sequence[int]) -> Writing:
        return Writing(ids=tuple(ids), text=decode(ids))

    return OutputPair(
        prompt=None if prompt is None else writing(prompt),
        reference=writing(reference),
        candidate=writing(candidate),
        vocabulary=replace(vocabulary, text_of=decode),
    )


def of_texts(reference: str, candidate: str, *, prompt: str | None = None) -> OutputPair:
    """Return a pair of which only the texts are known."""
    return OutputPair(
        prompt=None if prompt is None else Writing(ids=None, text=prompt),
        reference=Writing(ids=None, text=reference),
        candidate=Writing(ids=None, text=candidate),
    )
