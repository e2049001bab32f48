"""The reference and the batched baseline against two authorities: transformers' generate and an uncached forward."""

from __future__ import annotations

from random import Random

import pytest
import torch
from transformers import GenerationConfig

from specaudit.decoders import greedy, greedy_batch
from specaudit.faults.authority import uncached_greedy
from specaudit.faults.random_models import BUILDERS, VOCABULARY, random_model
from specaudit.models.loading import load_pair
from specaudit.models.options import LoadOptions
from specaudit.models.rendering import render
from specaudit.prompts import load_prompts

NEW_TOKENS = 32


def transformers_greedy(model: torch.nn.Module, prompt: list[int], eos_token_ids: set[int], budget: int) -> list[int]:
    """Return transformers' own batch-1 greedy continuation, without any processor."""
    config = GenerationConfig(
        max_new_tokens=budget, do_sample=False, eos_token_id=sorted(eos_token_ids) or None, pad_token_id=0
    )
    ids = torch.tensor([prompt])
    output = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)
    return output[0, len(prompt) :].tolist()


def random_prompts(vocabulary: int, *, count: int, longest: int) -> list[list[int]]:
    """Return seeded prompts of 1 to `longest` tokens."""
    random = Random(5)
    return [[random.randrange(vocabulary) for _ in range(random.randint(1, longest))] for _ in range(count)]


@pytest.mark.parametrize("decoder", [greedy, greedy_batch])
@pytest.mark.parametrize("architecture", sorted(BUILDERS))
def test_random_models(architecture: str, decoder) -> None:
    model = random_model(architecture)
    prompts = random_prompts(VOCABULARY, count=6, longest=20)
    eos = {uncached_greedy(model, prompts[0], max_new_tokens=4)[3], 9}
    outputs = decoder.decode(
        model, None, None, prompts, max_new_tokens=NEW_TOKENS, draft_tokens=4, eos_token_ids=eos, pad_token_id=9
    )
    for prompt, output in zip(prompts, outputs, strict=True):
        assert output == transformers_greedy(model, prompt, eos, NEW_TOKENS)
        assert output == uncached_greedy(model, prompt, max_new_tokens=NEW_TOKENS, eos_token_ids=eos)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bundled_target_on_the_bundled_prompts(dtype: str) -> None:
    target = load_pair("bundled:llama", None, options=LoadOptions(dtype=dtype, device="cpu")).target
    exact = load_pair("bundled:llama", None, options=LoadOptions(dtype="float64", device="cpu")).target.model
    prompts = [render(prompt, target.tokenizer, chat_template=False) for prompt in load_prompts(None).prompts]
    for prompt in prompts:
        (output,) = greedy.decode(
            target.model,
            None,
            None,
            [prompt],
            max_new_tokens=NEW_TOKENS,
            draft_tokens=4,
            eos_token_ids=set(target.eos_token_ids),
            pad_token_id=target.pad_token_id,
        )
        assert output == transformers_greedy(target.model, prompt, set(target.eos_token_ids), NEW_TOKENS)
        assert output == uncached_greedy(exact, prompt, max_new_tokens=NEW_TOKENS, eos_token_ids=target.eos_token_ids)
