"""A decoder as a user would write it: every row is rolled back to the shortest acceptance of the batch."""

import torch
from transformers import DynamicCache


@torch.no_grad()
def decode(target, draft, tokenizer, prompts, *, max_new_tokens, draft_tokens, eos_token_ids, pad_token_id):
    width = max(len(prompt) for prompt in prompts)
    ids = torch.tensor([[pad_token_id] * (width - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    outputs = [[] for _ in prompts]
    cache = DynamicCache()

    def forward(block, mask):
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -block.shape[1] :]
        return target(block, attention_mask=mask, position_ids=positions, past_key_values=cache).logits

    def is_done(prompt, output):
        return len(output) >= max_new_tokens or any(token in eos_token_ids for token in output)

    def commit(tokens):
        for prompt, output, new in zip(prompts, outputs, tokens.tolist(), strict=True):
            for token in new:
                if not is_done(prompt, output):
                    output.append(token)

    last = forward(ids, mask)[:, -1:].argmax(-1)
    commit(last)
    ids = torch.cat([ids, last], dim=1)
    while not all(is_done(prompt, output) for prompt, output in zip(prompts, outputs, strict=True)):
        drafted, drafted_mask = ids, torch.cat([mask, torch.ones_like(last)], dim=1)
        for _ in range(draft_tokens):
            positions = (drafted_mask.cumsum(-1) - 1).clamp(min=0)
            logits = draft(drafted, attention_mask=drafted_mask, position_ids=positions).logits
            drafted = torch.cat([drafted, logits[:, -1:].argmax(-1)], dim=1)
            drafted_mask = torch.cat([drafted_mask, torch.ones_like(last)], dim=1)
        block = drafted[:, -draft_tokens - 1 :]
        predictions = forward(block, drafted_mask).argmax(-1)
        matches = (block[:, 1:] == predictions[:, :-1]).long().cumprod(-1).sum(-1)
        kept = int(matches.min())
        if kept < draft_tokens:
            cache.crop(kept - draft_tokens)
        new = predictions[:, : kept + 1]
        commit(new)
        ids = torch.cat([ids, new], dim=1)
        mask = torch.cat([mask, torch.ones_like(new)], dim=1)
        last = new[:, -1:]
    return outputs
