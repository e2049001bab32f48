"""Transformers' assisted generation as a decoder: exact, clean when watched, and it leaves the models as they were."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, settings
from transformers import GenerationConfig

from specaudit.checks.streams import trace_streams
from specaudit.decoders import hf_assisted
from specaudit.faults.authority import uncached_greedy
from specaudit.faults.random_models import BUILDERS, VOCABULARY, random_draft, random_model
from specaudit.models.releases import RELEASE
from specaudit.trace.recorder import Recorder
from tests.decoders.ragged_batches import RaggedBatch, check, ragged_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

IS_RELEASE_4 = RELEASE < (5,)
OPTIONS = {"max_new_tokens": 12, "draft_tokens": 4, "eos_token_ids": set(), "pad_token_id": 0}
PROMPTS = [[5, 9, 2, 40, 7], [11]]


@pytest.mark.parametrize("architecture", sorted(BUILDERS))
@settings(max_examples=25)
@given(batch=ragged_batches(VOCABULARY, largest=1, scales=[0.0, 0.02, 0.1]))
def test_random_models(architecture: str, batch: RaggedBatch) -> None:
    # Transformers 4 gives nothing for one new token after a prompt that ends with EOS; a longer budget is right.
    assume(batch.max_new_tokens > 1 or not IS_RELEASE_4)
    check(hf_assisted.decode, random_model(architecture), random_draft(architecture, batch.scale), batch, VOCABULARY)


@pytest.fixture
def opinionated() -> Iterator[tuple[torch.nn.Module, torch.nn.Module]]:
    """Return a pair whose generation configs would change everything, were they used."""
    pair = random_model("llama"), random_draft("llama", 0.05)
    own = [model.generation_config for model in pair]
    for model in pair:
        model.generation_config = GenerationConfig(
            repetition_penalty=1.5, max_length=7, eos_token_id=[3, 4, 5], suppress_tokens=[9], do_sample=True, top_k=3
        )
    yield pair
    for model, config in zip(pair, own, strict=True):
        model.generation_config = config


def test_a_models_own_defaults_are_left_out_and_left_alone(
    opinionated: tuple[torch.nn.Module, torch.nn.Module],
) -> None:
    target, draft = opinionated
    before = [(id(model.generation_config), copy.deepcopy(model.generation_config)) for model in opinionated]
    outputs = hf_assisted.decode(target, draft, None, PROMPTS, **OPTIONS)
    assert outputs == [uncached_greedy(target, prompt, max_new_tokens=12) for prompt in PROMPTS]
    after = [(id(model.generation_config), model.generation_config) for model in opinionated]
    assert [(place, config.to_dict()) for place, config in before] == [
        (place, config.to_dict()) for place, config in after
    ]


@pytest.mark.parametrize("draft_tokens", [1, 3, 6])
def test_every_round_but_the_last_proposes_as_many_tokens(draft_tokens: int) -> None:
    target, draft = random_model("llama"), random_draft("llama", 0.05)
    with Recorder(target) as recorder:
        (output,) = hf_assisted.decode(
            target, draft, None, PROMPTS[:1], **{**OPTIONS, "draft_tokens": draft_tokens, "max_new_tokens": 40}
        )
    widths = [step.input_ids.shape[1] for step in recorder.trace.steps]
    assert widths[0] == len(PROMPTS[0]) + draft_tokens
    assert set(widths[1:-2]) <= {draft_tokens + 1}
    (stream,) = trace_streams(recorder.trace, PROMPTS[:1], [output])
    assert 0 < stream.accepted_tokens < stream.proposed_tokens  # the draft is neither always right nor always wrong
