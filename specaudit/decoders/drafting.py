"""Drafters: where a round's proposals come from.

A drafter keeps its own state and is told nothing but the committed streams, so whatever a target accepts or rejects, the
next proposal continues exactly what was committed: there is no rollback to get wrong.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import torch
from torch import Tensor

from specaudit.batch.cache import Feeder, SlotCache, realigned_slots
from specaudit.batch.padding import content_mask, following_positions, left_pad

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from transformers import PreTrainedModel

    from specaudit.decoders.rows import Row


class DraftSession(Protocol):
    """Proposals for the rows of one decoder call."""

    def propose(self, rows: Sequence[Row], count: int) -> Tensor:
        """Return `count` proposals for each row, int64 [B, count], continuing the row's committed stream."""
        ...


@runtime_checkable
class Drafter(Protocol):
    """Anything that opens draft sessions."""

    def start(self, *, pad_token_id: int, device: torch.device) -> DraftSession:
        """Return a session for one decoder call on `device`."""
        ...


def open_session(draft: PreTrainedModel | Drafter, *, pad_token_id: int, device: torch.device) -> DraftSession:
    """Return a draft session of a drafter, or of a model that drafts greedily."""
    if isinstance(draft, Drafter):
        return draft.start(pad_token_id=pad_token_id, device=device)
    return ModelDraftSession(draft, pad_token_id=pad_token_id)


class ModelDraftSession:
    """Greedy drafting by a smaller model which keeps its cache across rounds.

    The cache is kept by content: what it holds of a row is compared with the row's committed stream, the common part
    stays, the rest is cut. All rows then lack the same number of tokens, so one rectangular block brings them level.
    """

    def __init__(self, model: PreTrainedModel, *, pad_token_id: int) -> None:
        """Start with an empty cache."""
        self.model = model
        self.pad_token_id = pad_token_id
        self.feeder = Feeder(model, SlotCache(model))
        self.cached: dict[int, list[int]] = {}  # row index -> tokens whose keys and values the cache holds
        self.order: list[int] = []  # row indices in the cache, top to bottom

    def propose(self, rows: Sequence[Row], count: int) -> Tensor:
        """Draft `count` tokens for each row, int64 [B, count]; rows may leave between calls but not join."""
        streams = {row.index: row.stream for row in rows}
        lag = self._realign(streams)
        if lag is None:
            logits = self._prefill(streams)
        else:
            blocks = [stream[-lag:] for stream in streams.values()]
            logits = self._feed(torch.tensor(blocks, device=self.model.device))
        tokens = [logits[:, -1].argmax(-1)]
        for _ in range(count - 1):
            logits = self._feed(tokens[-1][:, None])
            tokens.append(logits[:, -1].argmax(-1))
        return torch.stack(tokens, dim=1)

    def _realign(self, streams: Mapping[int, list[int]]) -> int | None:
        """Cut the cache to what the streams confirm; return how many tokens every row lacks, None for all of them."""
        if not set(streams) <= set(self.order):
            return None
        common = [_common_prefix(self.cached[index], stream[:-1]) for index, stream in streams.items()]
        lag = max(len(stream) - shared for stream, shared in zip(streams.values(), common, strict=True))
        if any(len(stream) <= lag for stream in streams.values()):
            return None
        device = self.model.device
        rows = torch.tensor([self.order.index(index) for index in streams], device=device)
        lengths = torch.tensor([len(self.cached[index]) for index in streams], device=device)
        kept = torch.tensor([len(stream) - lag for stream in streams.values()], device=device)
        slots = realigned_slots(lengths, kept, width=self.feeder.cache.width)
        if slots is None and list(streams) == self.order:
            self.feeder.cache.crop(int(kept.max()))
        else:
            if slots is None:
                slots = torch.arange(int(kept.max()), device=device).expand(len(streams), -1)
            self.feeder.cache.gather(slots, rows)
        self.order = list(streams)
        self.cached = {index: stream[:-lag] for index, stream in streams.items()}
        return lag

    def _prefill(self, streams: Mapping[int, list[int]]) -> Tensor:
        self.feeder = Feeder(self.model, SlotCache(self.model))
        self.order = list(streams)
        self.cached = {index: list(stream) for index, stream in streams.items()}
        batch = left_pad(list(streams.values()), pad_token_id=self.pad_token_id, device=self.model.device)
        return self.feeder.feed(batch.input_ids, attention_mask=batch.attention_mask, position_ids=batch.position_ids)

    def _feed(self, block: Tensor) -> Tensor:
        lengths = torch.tensor([len(self.cached[index]) for index in self.order], device=block.device)
        count = block.shape[1]
        logits = self.feeder.feed(
            block,
            attention_mask=content_mask(lengths + count, self.feeder.cache.width + count),
            position_ids=following_positions(lengths, count),
        )
        for index, tokens in zip(self.order, block.tolist(), strict=True):
            self.cached[index].extend(tokens)
        return logits


class StressDraft:
    """Proposes the reference's own continuation with tokens replaced at a seeded rate: any acceptance on any target.

    Which places are replaced depends on seed, prompt and place alone, not on rounds or neighbours.
    """

    def __init__(
        self, references: Mapping[tuple[int, ...], Sequence[int]], *, rate: float, seed: int, vocabulary_size: int
    ) -> None:
        """Propose from `references` (prompt ids to output), a share `rate` in [0, 1] of the tokens replaced."""
        self.references = references
        self.rate = rate
        self.seed = seed
        self.vocabulary_size = vocabulary_size

    def start(self, *, pad_token_id: int, device: torch.device) -> StressDraftSession:
        """Return a session; the pad token is not used."""
        return StressDraftSession(self, device)

    def token(self, prompt: tuple[int, ...], place: int) -> int:
        """Return the proposal for output index `place` of `prompt`; a random token past the reference's end."""
        random = Random(f"{self.seed}:{place}:{prompt}")  # noqa: S311 (a seeded choice, no secret)
        reference = self.references.get(prompt, ())
        if place >= len(reference):
            return random.randrange(self.vocabulary_size)
        if random.random() >= self.rate:
            return reference[place]
        return (reference[place] + random.randrange(1, self.vocabulary_size)) % self.vocabulary_size


class StressDraftSession:
    """Stress proposals for one decoder call."""

    def __init__(self, draft: StressDraft, device: torch.device) -> None:
        """Propose from `draft` onto `device`."""
        self.draft = draft
        self.device = device

    def propose(self, rows: Sequence[Row], count: int) -> Tensor:
        """Return `count` proposals for each row, int64 [B, count]."""
        proposals = [
            [self.draft.token(tuple(row.prompt), place) for place in range(len(row.output), len(row.output) + count)]
            for row in rows
        ]
        return torch.tensor(proposals, device=self.device)


def _common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    for length, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return length
    return min(len(left), len(right))
