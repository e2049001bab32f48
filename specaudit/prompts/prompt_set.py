"""A named, ordered set of prompts, and how it is made smaller."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, replace
from difflib import get_close_matches
from hashlib import sha256
from itertools import zip_longest
from typing import TYPE_CHECKING

from specaudit.core.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from specaudit.core.prompt import Prompt

BUNDLED = "bundled"

BUNDLED_SIZES = {BUNDLED: 24, f"{BUNDLED}:96": 96}
"""Names of the bundled sets and their numbers of prompts; each is the beginning of the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSet:
    """Prompts in the order of their source, with unique ids; never empty."""

    name: str
    """`bundled`, `bundled:96`, `standard input`, or the file's name without its folders."""

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
                    way_out="make the ids unique, or leave them out: prompts without one are named by their place",
                )
            first_source[prompt.prompt_id] = prompt.source

    @property
    def is_bundled(self) -> bool:
        """Whether the set came with specaudit, so that nobody chose its chats."""
        return self.name in BUNDLED_SIZES

    @property
    def has_follow_ups(self) -> bool:
        """Whether a prompt has a second turn that waits for the answer to the first."""
        return any(prompt.follow_up is not None for prompt in self.prompts)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over ids and contents, in order; line endings, folders, categories and gold do not count."""
        contents = [
            [prompt.prompt_id, prompt.text, [[turn.role, turn.content] for turn in prompt.messages]]
            + ([] if prompt.follow_up is None else [prompt.follow_up])
            for prompt in self.prompts
        ]
        return sha256(json.dumps(contents, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()

    def in_categories(self, categories: Sequence[str]) -> PromptSet:
        """Return the prompts of the named categories, in the order of the source.

        Raises:
            UsageError: no prompt has one of them.
        """
        sizes = Counter(prompt.category for prompt in self.prompts if prompt.category is not None)
        unknown = next((category for category in categories if category not in sizes), None)
        if unknown is not None:
            raise _unknown_category(unknown, sizes, name=self.name)
        return replace(self, prompts=tuple(prompt for prompt in self.prompts if prompt.category in categories))

    def limited(self, limit: int) -> PromptSet:
        """Return at most `limit` prompts, in the order of the source, spread evenly over the categories.

        The categories take turns, in the order in which they first occur, each giving its next prompt; so a smaller
        limit always picks a subset of what a larger one picks. Without categories that is the first `limit` prompts.

        Raises:
            UsageError: `limit` is below 1.
        """
        _require_some(limit, "limit", "--limit")
        places_by_category: dict[str | None, list[int]] = {}
        for place, prompt in enumerate(self.prompts):
            places_by_category.setdefault(prompt.category, []).append(place)
        rounds = zip_longest(*places_by_category.values())
        return self._at([place for one_round in rounds for place in one_round if place is not None][:limit])

    def sampled(self, count: int, *, seed: int) -> PromptSet:
        """Return at most `count` prompts drawn at random, in the order of the source.

        The draw depends on `seed` and the number of prompts alone; a smaller sample is a subset of a larger one. It rests
        on `Random.random`, whose sequence Python keeps between releases and platforms, unlike that of `Random.sample`:
        https://docs.python.org/3/library/random.html#notes-on-reproducibility.

        Raises:
            UsageError: `count` is below 1.
        """
        _require_some(count, "sample", "--sample")
        generator = random.Random(seed)  # noqa: S311 - a sample, not a secret
        keys = [generator.random() for _ in self.prompts]
        return self._at(sorted(range(len(self.prompts)), key=keys.__getitem__)[:count])

    def without_chats(self) -> PromptSet:
        """Return the plain-text prompts alone, for a tokenizer that has no chat template.

        Raises:
            InputError: every prompt is a chat.
        """
        return replace(self, prompts=tuple(prompt for prompt in self.prompts if not prompt.messages))

    def _at(self, places: Iterable[int]) -> PromptSet:
        return replace(self, prompts=tuple(self.prompts[place] for place in sorted(places)))


def _require_some(count: int, noun: str, option: str) -> None:
    if count < 1:
        raise UsageError(f"a {noun} of {count} leaves no prompt", where=option, way_out="give 1 or more")


def _unknown_category(category: str, sizes: Counter[str], *, name: str) -> UsageError:
    if not sizes:
        return UsageError(
            f"the prompts of {name} have no categories", where="--category", way_out="leave --category out"
        )
    known = "known: " + ", ".join(f"{known} ({size})" for known, size in sizes.items())
    close = get_close_matches(category, sizes, n=1)
    return UsageError(
        f"no prompt of {name} is in category '{category}'",
        where="--category",
        way_out=f"did you mean '{close[0]}'? {known}" if close else known,
    )
