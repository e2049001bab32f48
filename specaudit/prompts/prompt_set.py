"""A named, ordered set of prompts."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import zip_longest
from typing import TYPE_CHECKING

from specaudit.core.errors import InputError, UsageError

if TYPE_CHECKING:
    from specaudit.core.prompt import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSet:
    """Prompts in the order of their source, with unique ids; never empty."""

    name: str
    """`bundled`, or the file's name without its folders."""

    prompts: tuple[Prompt, ...]
    """The prompts, in the order of the source."""

    def __post_init__(self) -> None:
        """Refuse an empty set and repeated ids (InputError), which would make cases that cannot be told apart."""
        if not self.prompts:
            raise InputError("the prompt set is empty", where=self.name, way_out="add at least one prompt")
        first_source: dict[str, str] = {}
        for prompt in self.prompts:
            if prompt.prompt_id in first_source:
                raise InputError(
                    f"prompt id '{prompt.prompt_id}' is already taken by {first_source[prompt.prompt_id]}",
                    where=prompt.source,
                    way_out="make the ids unique, or leave them out: prompts without one are named by their line",
                )
            first_source[prompt.prompt_id] = prompt.source

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over ids and contents, in order; line endings, folders and categories do not count."""
        contents = [
            [prompt.prompt_id, prompt.text, [[turn.role, turn.content] for turn in prompt.messages]]
            for prompt in self.prompts
        ]
        return sha256(json.dumps(contents, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()

    def limited(self, limit: int) -> PromptSet:
        """Return at most `limit` prompts, in the order of the source, spread evenly over the categories.

        The categories take turns, in the order in which they first occur, each giving its next prompt; so a smaller
        limit always picks a subset of what a larger one picks. Without categories that is the first `limit` prompts.

        Raises:
            UsageError: `limit` is below 1.
        """
        if limit < 1:
            raise UsageError(f"a limit of {limit} leaves no prompt", where="--limit", way_out="give 1 or more")
        places_by_category: dict[str | None, list[int]] = {}
        for place, prompt in enumerate(self.prompts):
            places_by_category.setdefault(prompt.category, []).append(place)
        rounds = zip_longest(*places_by_category.values())
        turns = [place for one_round in rounds for place in one_round if place is not None]
        return replace(self, prompts=tuple(self.prompts[place] for place in sorted(turns[:limit])))

    def without_chats(self) -> PromptSet:
        """Return the plain-text prompts alone, for a tokenizer that has no chat template.

        Raises:
            InputError: every prompt is a chat.
        """
        return replace(self, prompts=tuple(prompt for prompt in self.prompts if not prompt.messages))
