"""Legal variants come out clean and equal to the uncached float64 authority, on every architecture that can be observed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib.metadata import version

import pytest
import torch

from specaudit.checks.judgement import judge
from specaudit.checks.streams import trace_streams
from specaudit.core.vocabulary import Sync
from specaudit.decoders import eqspec
from specaudit.faults.authority import uncached_greedy
from specaudit.faults.random_models import BUILDERS, random_draft, random_model
from specaudit.models.layers_draft import first_layers
from specaudit.trace.recorder import Recorder
from tests.checks.batches import RandomBatch, audit
from tests.variants.catalogue import GENERATE, variant, variants_for
from tests.variants.shared_modules import shared_layers

IS_BEFORE_5 = int(version("transformers").split(".")[0]) < 5
BATCH = RandomBatch(
    architecture="llama",
    vocabulary=64,
    prompts=((5, 9, 9, 14, 3, 8, 21, 2, 40), (7,), (5, 9, 9), (7,), (0, 0, 3), (0, 0, 0)),
    max_new_tokens=9,
    draft_tokens=3,
    eos=63,
    pad=0,
    draft="noisy:0.02",
)
"""Equal prompts, prompts that begin others, prompts of pad tokens; rows cross a window of 8."""


def assert_clean(result) -> None:
    assert result.outputs == result.expected
    for judgement in result.judgements:
        assert judgement.sync is Sync.CERTIFIED, (judgement.reason, judgement.findings)


@pytest.mark.parametrize(
    ("architecture", "name"),
    [(architecture, name) for architecture in sorted(BUILDERS) for name in variants_for(architecture)],
)
def test_variants(architecture: str, name: str) -> None:
    assert_clean(audit(variant(name), replace(BATCH, architecture=architecture)))


@pytest.mark.parametrize("name", GENERATE)
@pytest.mark.parametrize("architecture", ["llama", "mistral", "gemma3", "gpt2", "opt"])
def test_transformers_own(architecture: str, name: str) -> None:
    assert_clean(audit(variant(name), replace(BATCH, architecture=architecture)))


@pytest.mark.parametrize("name", ["no_bonus", "hole_masked", "no_cache", "several_forwards"])
@pytest.mark.parametrize("draft", ["self", "stress:0", "stress:0.5", "stress:1"])
def test_every_acceptance(draft: str, name: str) -> None:
    """The target as its own draft too: the draft's forwards are then steps of the target."""
    assert_clean(audit(variant(name), replace(BATCH, draft=draft)))


@pytest.mark.parametrize("make_draft", [first_layers, shared_layers])
@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gemma3"])
def test_drafts_of_the_targets_own_layers(architecture: str, make_draft) -> None:
    model = random_model(architecture)

    def decode(target, draft, *arguments, **options):
        return eqspec.decode(target, make_draft(model, 2), *arguments, **options)

    assert_clean(audit(decode, replace(BATCH, architecture=architecture)))


@pytest.mark.parametrize("name", ["no_bonus", "static_cache", "refilled_rows"])
def test_inference_mode(name: str) -> None:
    decode = variant(name)

    def in_inference_mode(*arguments, **options):
        with torch.inference_mode():
            return decode(*arguments, **options)

    assert_clean(audit(in_inference_mode, BATCH))


def test_gradients_left_on() -> None:
    assert_clean(audit(partial(variant("plain_loop").__wrapped__), BATCH))


@pytest.mark.parametrize("batch_size", [1, 2, 4])
def test_fewer_rows_than_prompts(batch_size: int) -> None:
    assert_clean(audit(variant("refilled_rows"), BATCH, batch_size=batch_size))


@pytest.mark.parametrize("name", ["no_bonus", "batch_minimum", "static_cache", "generated", "refilled_rows"])
def test_bfloat16(name: str) -> None:
    """Rounding may change tokens, and one prefix may have several bit patterns; the checks do not care."""
    model = random_model("llama", torch.bfloat16)
    draft = random_draft("llama", 0.02, torch.bfloat16)
    with Recorder(model) as recorder:
        outputs = variant(name)(
            model,
            draft,
            None,
            [list(prompt) for prompt in BATCH.prompts],
            max_new_tokens=9,
            draft_tokens=3,
            eos_token_ids={63},
            pad_token_id=0,
        )
    for judgement in judge(recorder.trace, trace_streams(recorder.trace, BATCH.prompts, outputs)):
        assert judgement.sync is Sync.CERTIFIED, (judgement.reason, judgement.findings)


@pytest.mark.parametrize("name", ["no_bonus", "generated", "hole_masked"])
def test_eager_attention(name: str) -> None:
    """Seen on transformers 5, where eager goes through the registry; unobserved before, and never a false alarm.

    In float32: eager's softmax is, and the mask of float64 overflows there, so that padded rows become NaN.
    """
    model = random_model("llama", torch.float32, 63)  # of its own: the implementation is changed
    model.set_attn_implementation("eager")
    try:
        prompts = [list(prompt) for prompt in BATCH.prompts]
        with Recorder(model) as recorder:
            outputs = variant(name)(
                model,
                random_draft("llama", 0.02, torch.float32, 63),
                None,
                prompts,
                max_new_tokens=6,
                draft_tokens=3,
                eos_token_ids=set(),
                pad_token_id=0,
            )
        expected = [uncached_greedy(model, prompt, max_new_tokens=6) for prompt in prompts]
    finally:
        model.set_attn_implementation("sdpa")
    assert outputs == expected
    judgements = judge(recorder.trace, trace_streams(recorder.trace, prompts, outputs))
    syncs = {judgement.sync for judgement in judgements}
    assert syncs == {Sync.UNOBSERVED if IS_BEFORE_5 else Sync.CERTIFIED}
