"""What symptoms are looked for in: a candidate's output beside the reference's, as ids, as text, or both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

TextOf = Callable[[Sequence[int]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """A prompt or an output; at least one of the two forms is there."""

    ids: tuple[int, ...] | None
    """Token ids, or None where only the text is known."""

    text: str | None
    """Text, or None where only the ids are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """What is known of the ids besides their equality; by default nothing, as for a recording."""

    eos_ids: frozenset[int] | None = None
    """Ids that end an output, empty where the end of sequence is ignored; None where they are not known."""

    pad_id: int | None = None
    """Id that fills rows up, or None where it is not known."""

    special_ids: frozenset[int] = frozenset()
    """Ids that stand for no text; empty where they are not known."""

    text_of: TextOf | None = None
    """Returns the text of ids, special tokens kept; None where there is no tokenizer."""

    plain_text_of: TextOf | None = None
    """Returns the text of ids, special tokens left out; None where there is no tokenizer."""

    @property
    def textless_ids(self) -> frozenset[int]:
        """Return the ids that a reader never sees as text."""
        return self.special_ids | (self.eos_ids or frozenset())


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPair:
    """A candidate's output and the reference's for the same prompt."""

    prompt: Writing | None
    """The prompt, or None where it is not known."""

    reference: Writing
    """What the reference generated."""

    candidate: Writing
    """What the candidate generated."""

    vocabulary: Vocabulary = Vocabulary()
    """What is known of the ids."""

    def is_equal(self) -> bool:
        """Return whether both outputs are the same: by ids where both have them, else by text."""
        if self.candidate.ids is not None and self.reference.ids is not None:
            return self.candidate.ids == self.reference.ids
        return self.candidate.text is not None and self.candidate.text == self.reference.text
