"""Two branches of proposals in one block, kept apart by a 4-D mask; siblings have the same positions."""

from __future__ import annotations

from typing import Any

import torch

from specaudit.batch.padding import content_mask
from specaudit.decoders.acceptance import accepted_counts, committed_tokens
from specaudit.decoders.drafting import open_session
from specaudit.decoders.rows import start_rows
from specaudit.faults.legal.rectangle import Rectangle


@torch.no_grad()
def decode(
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
    rows = start_rows(prompts, budget=max_new_tokens, eos_token_ids=eos_token_ids)
    session = open_session(draft, pad_token_id=pad_token_id, device=target.device)
    batch = Rectangle(target, pad_token_id)
    for row, token in zip(rows, batch.prefill(prompts)[:, -1].argmax(-1).tolist(), strict=True):
        row.commit([token])

    count = draft_tokens
    branch = torch.ones(count, count, dtype=torch.bool).tril()
    tree = torch.block_diag(branch, branch).bool()
    tree = torch.cat([torch.ones(2 * count, 1, dtype=torch.bool), tree], dim=1)
    tree = torch.cat([torch.eye(1, 2 * count + 1, dtype=torch.bool), tree])  # [q, q]: the root, then two branches
    active = rows
    while places := [place for place, row in enumerate(active) if not row.is_finished]:
        active = [active[place] for place in places]
        batch.keep([row.length - 1 for row in active], places)
        drafted = session.propose(active, count)
        wrong = (drafted + 1) % target.config.vocab_size  # a branch of its own, seldom right
        options = [wrong, drafted] if len(active) % 2 else [drafted, wrong]
        block = torch.cat([torch.tensor([[row.output[-1]] for row in active]), *options], dim=1)  # [B, 2 K + 1]
        lengths, width = batch.lengths, batch.feeder.cache.width
        past = content_mask(lengths, width).bool()[:, None, None].expand(-1, 1, 2 * count + 1, -1)
        mask = torch.cat([past, tree.expand(len(active), 1, -1, -1)], dim=-1)  # [B, 1, q, n]
        depths = torch.cat([torch.zeros(1), torch.arange(count) + 1, torch.arange(count) + 1]).long()
        logits = batch.feeder.feed(block, attention_mask=mask, position_ids=lengths[:, None] + depths)
        predictions = logits.argmax(-1)
        slots = []
        for place, row in enumerate(active):
            branches = [torch.tensor([0, *range(1, count + 1)]), torch.tensor([0, *range(count + 1, 2 * count + 1)])]
            counts = [
                int(accepted_counts(block[place, path[1:]][None], predictions[place, path][None])) for path in branches
            ]
            best = branches[counts[1] > counts[0]]
            accepted = accepted_counts(block[place, best[1:]][None], predictions[place, best][None])
            row.commit(committed_tokens(block[place, best[1:]][None], predictions[place, best][None], accepted)[0])
            slots.append(torch.cat([torch.arange(width), width + best]))
        batch.feeder.cache.gather(torch.stack(slots), torch.arange(len(active)))  # the better branch alone
        batch.lengths = lengths + count + 1
    return [row.output for row in rows]
