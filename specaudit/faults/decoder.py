"""A correct batched speculative decoder in three cache layouts, with places for a fault to reach in.

Rows stay in their places of the batch, finished ones too, so that a fault can name a row. A round is one forward and
step n of the target is the n-th round; the draft has to run no forward of the target.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from specaudit.batch.cache import Feeder, SlotCache, realigned_slots
from specaudit.batch.padding import left_pad
from specaudit.batch.static_cache import StaticSlotCache
from specaudit.decoders.acceptance import accepted_counts, committed_tokens
from specaudit.decoders.drafting import open_session
from specaudit.decoders.rows import start_rows
from specaudit.faults.fault import Injection, Layout, Turn
from specaudit.faults.sight import attention_mask, has_windows, rows_apart

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from specaudit.decoders.drafting import DraftSession
    from specaudit.decoders.rows import Row


@dataclass(slots=True, kw_only=True)
class FaultyDecoder:
    """The decoder; with the default injection it is correct."""

    layout: Layout
    """How it keeps its cache."""

    injection: Injection = field(default_factory=Injection)
    """What is broken."""

    places: int | None = None
    """Rows decoded at a time, the others wait for a place; None for all. In-place layouts only."""

    compacts_at: int | None = None
    """Round before which slots are moved together, or None for never. Holes only."""

    marks: dict[int, int] = field(default_factory=dict)
    """After a call: the step in which the fault first touched each row, by index of the prompt."""

    chosen_logits: list[list[Tensor]] = field(default_factory=list)
    """After a call: the logits that chose each token that a row went on with, [vocabulary] each."""

    def decode(
        self,
        target: PreTrainedModel,
        draft: Any,
        tokenizer: Any,
        prompts: list[list[int]],
        *,
        max_new_tokens: int,
        draft_tokens: int,
        eos_token_ids: set[int],
        pad_token_id: int,
    ) -> list[list[int]]:
        """Decode all prompts; raise ValueError for a model that the layout cannot hold."""
        if self.layout is Layout.STATIC and has_windows(target):
            raise ValueError("a static cache drops what leaves a window, so that columns are no places any more")
        if self.places is not None and self.layout is Layout.CONTIGUOUS:
            raise ValueError("rows are refilled where slots never move")
        if self.compacts_at is not None and self.layout is not Layout.HOLES:
            raise ValueError("slots are moved together in the layout with holes alone")
        rows = start_rows(prompts, budget=max_new_tokens, eos_token_ids=eos_token_ids)
        size = max(map(len, prompts)) * (1 if self.places is None else len(prompts))
        size += (max_new_tokens + 2) * (draft_tokens + 1) * (1 if self.places is None else len(prompts))
        cache = (
            StaticSlotCache(target, rows=self.places or len(prompts), size=size)
            if self.layout is Layout.STATIC
            else SlotCache(target)
        )
        self.chosen_logits = [[] for _ in rows]
        call = _Call(
            decoder=self,
            feeder=Feeder(target, cache),
            rows=rows,
            session=open_session(draft, pad_token_id=pad_token_id, device=target.device),
            draft_tokens=draft_tokens,
            pad_token_id=pad_token_id,
        )
        with torch.no_grad():
            while call.goes_on():
                call.take_turn()
        return self.injection.outputs([row.output for row in rows], pad_token_id)


class _Call:
    """One call of the decoder."""

    def __init__(
        self,
        *,
        decoder: FaultyDecoder,
        feeder: Feeder,
        rows: list[Row],
        session: DraftSession,
        draft_tokens: int,
        pad_token_id: int,
    ) -> None:
        self.decoder = decoder
        self.injection = decoder.injection
        self.feeder = feeder
        self.rows = rows
        self.session = session
        self.draft_tokens = draft_tokens
        self.pad_token_id = pad_token_id
        self.device = feeder.model.device
        count = len(rows) if decoder.places is None else decoder.places
        self.batch, self.waiting = rows[:count], rows[count:]
        self.is_new = [True] * count
        self.rejected = [0] * count
        self.ends: dict[int, int] = {}  # place -> what a row that ended unverified feeds on and on
        self.step = 0
        self.lengths = torch.zeros(count, dtype=torch.long, device=self.device)  # tokens of each row in the cache
        self.seen = torch.zeros(count, 0, dtype=torch.bool, device=self.device)  # what rows may see of the cache
        self.indices = torch.zeros(count, 0, dtype=torch.long, device=self.device)  # place in the stream of each slot

    def goes_on(self) -> bool:
        """Return whether a row is unfinished."""
        if self.step == 0:
            return True
        unfinished = [row for row in self.rows if not self.injection.is_finished(row)]
        return bool(unfinished) and self.injection.goes_on(self.rows)

    def take_turn(self) -> None:
        """Run one forward and commit what it gives."""
        self._refill()
        turn = Turn(
            step=self.step,
            rows=self.batch,
            running=[
                new or not self.injection.is_finished(row) for row, new in zip(self.batch, self.is_new, strict=True)
            ],
            rejected=self.rejected,
            old_width=self.feeder.cache.width,
            cache=self.feeder.cache,
            kept=self._cached(),
            marks=self.decoder.marks,
        )
        if self.step and self.injection.skips_last:
            self._commit_unverified(turn)
        if self.step:
            self._settle(turn)
        logits, blocks = self._forward(turn)
        self._commit(turn, logits, blocks)
        self.step += 1

    def _refill(self) -> None:
        for place, row in enumerate(self.batch):
            if self.step and self.waiting and self.injection.is_finished(row):
                self.batch[place] = self.waiting.pop(0)
                self.is_new[place] = True
                if self.injection.clears_places:
                    self.seen[place] = False

    def _commit_unverified(self, turn: Turn) -> None:
        """Fill rows with at most K tokens left from the draft alone."""
        proposals = self.session.propose(self.batch, self.draft_tokens).tolist()
        for place, (row, tokens) in enumerate(zip(self.batch, proposals, strict=True)):
            if turn.running[place] and row.budget - len(row.output) <= self.draft_tokens:
                turn.mark(place)
                self.ends[place] = turn.kept[place] - 1
                row.commit(tokens)
                turn.running[place] = False
        for place, end in self.ends.items():
            turn.kept[place] = end
            self.seen[place] &= self.indices[place] < end

    # Before the forward

    def _settle(self, turn: Turn) -> None:
        """Bring the cache into the form in which the layout keeps it."""
        if self.decoder.layout is Layout.CONTIGUOUS:
            self.injection.cut(turn)
            self.injection.before_move(turn)
            self._realign(turn.kept)
        elif self.decoder.compacts_at == self.step:
            self.injection.before_move(turn)
            self._compact()
        turn.old_width = self.feeder.cache.width

    def _realign(self, kept: list[int]) -> None:
        """Keep the first tokens of each row, flush right: the rows end at the last column of what they fed."""
        width = self.feeder.cache.width
        tokens = torch.tensor(kept, device=self.device)
        slots = realigned_slots(self.lengths, tokens, width=width)
        if slots is None:
            slots = torch.arange(int(tokens.max()), device=self.device).expand(len(kept), -1)
        self._gather(slots)
        columns = torch.arange(slots.shape[1], device=self.device)
        self.seen = columns >= (slots.shape[1] - tokens)[:, None]
        self.indices = torch.where(self.seen, columns - (slots.shape[1] - tokens)[:, None], -1)

    def _compact(self) -> None:
        """Move the visible slots of each row together, flush right; hidden ones are dropped where they can be."""
        width = int(self.seen.sum(1).max())
        slots = self.seen.long().argsort(dim=1, stable=True)[:, -width:]  # the visible ones come last, in their order
        self._gather(slots)
        self.seen, self.indices = self.seen.gather(1, slots), self.indices.gather(1, slots)

    def _gather(self, slots: Tensor) -> None:
        self.feeder.cache.gather(slots, torch.arange(len(slots), device=self.device))

    # The forward

    def _forward(self, turn: Turn) -> tuple[Tensor, list[list[int]]]:
        """Feed each row its block, padded on the left; return the logits [B, q, vocabulary] and the blocks."""
        blocks = self._blocks(turn)
        batch = left_pad(blocks, pad_token_id=self.pad_token_id, device=self.device)
        position_ids = torch.tensor(self._lengths(), device=self.device)[:, None] + batch.position_ids
        is_own = batch.attention_mask.bool()
        seen = torch.cat([self.seen, is_own], dim=1)
        indices = torch.cat([self.indices, position_ids.masked_fill(~is_own, -1)], dim=1)
        turn.seen, turn.indices, turn.position_ids = seen, indices, position_ids
        self.injection.forward(turn)
        self._mark_differences(turn, seen, position_ids)
        logits = self.feeder.feed(
            batch.input_ids,
            attention_mask=self._mask(turn, count=batch.input_ids.shape[1]),
            position_ids=turn.position_ids,
        )
        self.seen, self.indices = seen, indices
        self.lengths = torch.tensor(turn.kept, device=self.device) + is_own.sum(1)
        return logits, blocks

    def _mask(self, turn: Turn, *, count: int) -> Any:
        assert turn.seen is not None and turn.indices is not None  # noqa: S101, PT018 (set by the caller)
        if self.decoder.layout is Layout.CONTIGUOUS:
            return turn.seen.long()
        return attention_mask(self.feeder.model, turn.seen, turn.indices, count=count)

    def _cached(self) -> list[int]:
        """Return how many tokens of each row the cache has and should keep."""
        return [min(own, there) for own, there in zip(self._lengths(), self.lengths.tolist(), strict=True)]

    def _lengths(self) -> list[int]:
        """Return the position of the first token that each row feeds next."""
        return [
            self.ends.get(place, 0 if new else row.length - 1)
            for place, (row, new) in enumerate(zip(self.batch, self.is_new, strict=True))
        ]

    def _blocks(self, turn: Turn) -> list[list[int]]:
        """Return what each row feeds: its prompt, or the last committed token and the proposals."""
        old = [row for row, new in zip(self.batch, self.is_new, strict=True) if not new]
        if not old:
            return [list(row.prompt) for row in self.batch]
        proposals = dict(
            zip((row.index for row in old), self.session.propose(old, self.draft_tokens + 1).tolist(), strict=True)
        )
        nothing = [self.pad_token_id] * (self.draft_tokens + 1)
        turn.proposals = torch.tensor([proposals.get(row.index, nothing) for row in self.batch], device=self.device)
        for place, end in self.ends.items():
            row = self.batch[place]
            proposals[row.index] = [abs(row.stream[end + 1] - 1)] * len(nothing)  # not the token that comes next
        return [
            list(row.prompt) if new else [row.stream[start], *proposals[row.index][: self.draft_tokens]]
            for row, new, start in zip(self.batch, self.is_new, self._lengths(), strict=True)
        ]

    def _mark_differences(self, turn: Turn, seen: Tensor, position_ids: Tensor) -> None:
        """Mark the rows in which a fault has changed what is seen, or a position of what is fed."""
        count = position_ids.shape[1]
        used = turn.position_ids
        if used is None:
            used = torch.arange(count, device=self.device).expand_as(position_ids) + turn.old_width
        differs = ((used != position_ids) & seen[:, -count:]).any(1)
        assert turn.seen is not None and turn.indices is not None  # noqa: S101, PT018 (set by the caller)
        places = turn.indices
        if self.decoder.layout is Layout.CONTIGUOUS:  # there the model makes its windows, by columns
            places = torch.arange(seen.shape[1], device=self.device).expand_as(seen)
        differs |= rows_apart(self.feeder.model, turn.seen, seen, places, count=count)
        for place in differs.nonzero()[:, 0].tolist():
            turn.mark(place)

    # After the forward

    def _commit(self, turn: Turn, logits: Tensor, blocks: list[list[int]]) -> None:
        fed = self.draft_tokens + 1
        if turn.proposals is not None:
            turn.predictions = logits[:, -fed:].argmax(-1)
            turn.accepted = accepted_counts(turn.proposals[:, : self.draft_tokens], turn.predictions)
            turn.committed = committed_tokens(turn.proposals[:, : self.draft_tokens], turn.predictions, turn.accepted)
        else:
            turn.committed = [[] for _ in blocks]
        for place, new in enumerate(self.is_new):
            if new:
                turn.committed[place] = [int(logits[place, -1].argmax())]
        self.injection.verify(turn)
        width = self.seen.shape[1]
        for place, (row, tokens) in enumerate(zip(self.batch, turn.committed, strict=True)):
            new, running = self.is_new[place], turn.running[place]
            kept = 0 if turn.accepted is None else int(turn.accepted[place])
            first = logits.shape[1] - (1 if new else fed)
            before = len(row.output)
            if running:
                self.injection.commit(row, tokens)
            self.decoder.chosen_logits[row.index] += list(logits[place, first : first + len(row.output) - before])
            if not new:
                self.rejected[place] = self.draft_tokens - kept
                self.seen[place, width - self.draft_tokens + kept :] = False
                if not running:
                    self.seen[place, width - fed :] = False
        self.is_new = [False] * len(self.batch)
