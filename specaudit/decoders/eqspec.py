"""EQSPEC (Zhang et al., arXiv 2510.22876): batched speculative decoding by unpad, append, repad.

Each round feeds the last committed token and K proposals, with mask and positions stated. Rows accept different numbers
of tokens; what was rejected is cut and every row is moved flush right again, keys and values with it, by one gather a
layer, or by a crop alone when no row's padding changes. Where the published code slips, this does not: up to K + 1
tokens are committed a round, EOS is looked for in generated tokens only, padding is known by length, the draft keeps
its cache, finished rows leave the batch, and one row's budget never shortens its neighbours' proposals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from specaudit.batch.cache import Feeder, SlotCache, realigned_slots
from specaudit.batch.padding import content_mask, following_positions, left_pad
from specaudit.decoders.acceptance import accepted_counts, committed_tokens
from specaudit.decoders.choice import token_choice
from specaudit.decoders.drafting import Drafter, open_session
from specaudit.decoders.rows import start_rows

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase


@torch.no_grad()
def decode(
    target: PreTrainedModel,
    draft: PreTrainedModel | Drafter,
    tokenizer: PreTrainedTokenizerBase | None,
    prompts: list[list[int]],
    *,
    max_new_tokens: int,
    draft_tokens: int,
    eos_token_ids: set[int],
    pad_token_id: int,
    generation_config: GenerationConfig | None = None,
) -> list[list[int]]:
    """Decode all prompts in one batch; `tokenizer` is not used."""
    session = open_session(draft, pad_token_id=pad_token_id, device=target.device)
    feeder = Feeder(target, SlotCache(target))
    choice = token_choice(target, generation_config, max_new_tokens=max_new_tokens, eos_token_ids=eos_token_ids)
    rows = start_rows(prompts, budget=max_new_tokens, eos_token_ids=eos_token_ids)
    batch = left_pad(prompts, pad_token_id=pad_token_id, device=target.device)
    logits = feeder.feed(batch.input_ids, attention_mask=batch.attention_mask, position_ids=batch.position_ids)
    for row, tokens in zip(rows, choice.choose(logits[:, -1:], rows).tolist(), strict=True):
        row.commit(tokens)

    active, lengths = rows, batch.lengths  # lengths: tokens of each row in the cache; the last committed one is not
    kept = lengths
    while True:
        unfinished = [place for place, row in enumerate(active) if not row.is_finished]
        if not unfinished:
            return [row.output for row in rows]
        _realign(feeder.cache, lengths, kept, unfinished)
        active = [active[place] for place in unfinished]
        lengths = kept[unfinished]

        proposals = session.propose(active, draft_tokens)  # [B, K]
        pending = torch.tensor([[row.output[-1]] for row in active], device=target.device)
        logits = feeder.feed(
            torch.cat([pending, proposals], dim=1),  # [B, K + 1]
            attention_mask=content_mask(lengths + draft_tokens + 1, feeder.cache.width + draft_tokens + 1),
            position_ids=following_positions(lengths, draft_tokens + 1),
        )
        predictions = choice.choose(logits, active, proposals)  # [B, K + 1]
        accepted = accepted_counts(proposals, predictions)
        for row, tokens in zip(active, committed_tokens(proposals, predictions, accepted), strict=True):
            row.commit(tokens)
        kept = lengths + 1 + accepted
        lengths = lengths + draft_tokens + 1


def _realign(cache: SlotCache, lengths: Tensor, kept: Tensor, rows: list[int]) -> None:
    """Keep `rows`, cut each to its `kept` tokens and move it flush right; crop alone when nothing has to move."""
    slots = realigned_slots(lengths[rows], kept[rows], width=cache.width)
    width = int(kept[rows].max())
    if slots is None and len(rows) == len(lengths):
        cache.crop(width)
        return
    if slots is None:
        slots = torch.arange(width, device=lengths.device).expand(len(rows), -1)
    cache.gather(slots, torch.tensor(rows, device=lengths.device))
