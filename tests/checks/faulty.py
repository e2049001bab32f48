"""Two correct decoders with a place to break each: before a forward, and when rejected tokens are dropped.

Rows stay where their prompts are, a round is one forward, and drafts come from outside the target: step 0 is the prefill,
step n the n-th round.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from specaudit.batch.cache import Feeder, SlotCache
from specaudit.batch.padding import content_mask, left_pad
from specaudit.decoders.acceptance import accepted_counts, committed_tokens
from specaudit.decoders.drafting import open_session
from specaudit.decoders.rows import start_rows
from specaudit.faults.legal.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor


@dataclass(slots=True, kw_only=True)
class Forward:
    """What a decoder is about to pass to the target; a fault changes it."""

    step: int
    input_ids: Tensor
    attention_mask: Tensor | None
    position_ids: Tensor | None
    cache: SlotCache


@dataclass(slots=True, kw_only=True)
class Round:
    """What the decoder knew before a round."""

    lengths: list[int]
    """Tokens of each row in prompt and output; the last is the pending one."""

    width: int
    """Columns of the cache."""

    rejected: list[int]
    """Proposals that each row rejected in the round before."""

    running: list[bool]
    """Rows that go on."""


@dataclass(slots=True, kw_only=True)
class Broken:
    """A decoder with a fault."""

    forward: Callable[[Forward], None] = lambda forward: None
    """Changes what a forward is given."""

    keep: Callable[[int, list[int]], list[int]] = lambda step, kept: kept
    """Changes how many tokens each row keeps in the cache before step n."""

    hide: Callable[[int, Tensor], Tensor] = lambda step, mask: mask
    """Changes the mask of the cache before step n, int64 [B, n]."""

    in_place: bool = False
    """Whether slots never move and rejected ones are masked; else the cache is cropped and realigned."""

    rounds: list[Round] = field(default_factory=list)
    """What the decoder knew, by round; the first is step 1."""

    @torch.no_grad()
    def decode(
        self,
        target: Any,
        draft: Any,
        tokenizer: Any,
        prompts: list[list[int]],
        *,
        max_new_tokens: int,
        draft_tokens: int,
        eos_token_ids: set[int],
        pad_token_id: int,
    ) -> list[list[int]]:
        """Decode all prompts in one batch."""
        rows = start_rows(prompts, budget=max_new_tokens, eos_token_ids=eos_token_ids)
        session = open_session(draft, pad_token_id=pad_token_id, device=target.device)
        feeder = _BreakingFeeder(target, SlotCache(target), self.forward)
        batch = left_pad(prompts, pad_token_id=pad_token_id, device=target.device)
        mask, lengths = batch.attention_mask, batch.lengths
        logits = feeder.feed(batch.input_ids, attention_mask=mask, position_ids=batch.position_ids)
        for row, token in zip(rows, logits[:, -1].argmax(-1).tolist(), strict=True):
            row.commit([token])
        fed, rejected = torch.arange(draft_tokens + 1), [0] * len(rows)
        while not all(row.is_finished for row in rows):
            step = len(self.rounds) + 1
            running = [not row.is_finished for row in rows]
            self.rounds.append(
                Round(
                    lengths=[row.length for row in rows],
                    width=feeder.cache.width,
                    rejected=rejected,
                    running=running,
                )
            )
            if self.in_place:
                seen = self.hide(step, mask)
            else:
                kept = self.keep(step, [row.length - 1 for row in rows])
                rectangle = Rectangle(target, pad_token_id)
                rectangle.feeder, rectangle.lengths = feeder, lengths
                rectangle.keep(kept)
                lengths = rectangle.lengths + draft_tokens + 1
                seen = self.hide(step, content_mask(rectangle.lengths, feeder.cache.width))
            proposals = session.propose(rows, draft_tokens)
            block = torch.cat([torch.tensor([[row.output[-1]] for row in rows]), proposals], dim=1)
            positions = torch.tensor([[row.length - 1] for row in rows]) + fed
            predictions = feeder.feed(
                block, attention_mask=torch.cat([seen, torch.ones_like(block)], dim=1), position_ids=positions
            ).argmax(-1)
            accepted = accepted_counts(proposals, predictions)
            rejected = [draft_tokens - int(count) for count in accepted]
            for row, tokens in zip(rows, committed_tokens(proposals, predictions, accepted), strict=True):
                row.commit(tokens)
            is_kept = (fed <= accepted[:, None]) & torch.tensor(running)[:, None]
            mask = torch.cat([mask, is_kept.long()], dim=1)
        return [row.output for row in rows]


class _BreakingFeeder(Feeder):
    """A feeder that lets a fault change every forward."""

    __slots__ = ("alter", "steps")

    def __init__(self, model: Any, cache: SlotCache, alter: Callable[[Forward], None]) -> None:
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "cache", cache)
        object.__setattr__(self, "alter", alter)
        object.__setattr__(self, "steps", [])

    def feed(self, input_ids: Tensor, *, attention_mask: Tensor | None, position_ids: Tensor | None) -> Tensor:
        forward = Forward(
            step=len(self.steps),
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            cache=self.cache,
        )
        self.steps.append(forward.step)
        self.alter(forward)
        return Feeder.feed(
            self, forward.input_ids, attention_mask=forward.attention_mask, position_ids=forward.position_ids
        )
