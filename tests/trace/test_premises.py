"""What is taken for granted of a model is checked: where it does not hold, no output is certified."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM

from specaudit.checks.judgement import judge
from specaudit.checks.streams import trace_streams
from specaudit.core.vocabulary import Sync
from specaudit.decoders import greedy_batch
from specaudit.faults.random_models import random_model
from specaudit.trace.premises import caveats, length_limit
from specaudit.trace.recorder import Recorder

SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
PROMPTS = [[5, 9, 11, 14, 3, 8], [7, 30]]


def judged(model, *, max_new_tokens: int = 6):
    with Recorder(model) as recorder:
        outputs = greedy_batch.decode(
            model,
            None,
            None,
            PROMPTS,
            max_new_tokens=max_new_tokens,
            draft_tokens=0,
            eos_token_ids=set(),
            pad_token_id=0,
        )
    return judge(recorder.trace, trace_streams(recorder.trace, PROMPTS, outputs))


def dynamic_rope(limit: int) -> LlamaForCausalLM:
    torch.manual_seed(0)
    scaling = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    return LlamaForCausalLM(LlamaConfig(**SMALL, max_position_embeddings=limit, rope_scaling=scaling)).eval()


def test_a_plain_model_has_no_caveats() -> None:
    model = random_model("llama")
    assert caveats(model) == ()
    assert length_limit(model) is None
    assert {one.sync for one in judged(model)} == {Sync.CERTIFIED}


def test_experts_keep_a_case_from_being_certified() -> None:
    torch.manual_seed(0)
    model = MixtralForCausalLM(MixtralConfig(**SMALL, num_local_experts=4, max_position_embeddings=64)).eval()
    for one in judged(model):
        assert one.sync is Sync.CLEAN
        assert "experts" in one.reason


@pytest.mark.filterwarnings("ignore")
def test_a_quantised_model_is_never_certified() -> None:
    torch.manual_seed(0)
    plain = LlamaForCausalLM(LlamaConfig(**SMALL, max_position_embeddings=64)).eval()
    model = torch.ao.quantization.quantize_dynamic(plain, {torch.nn.Linear}, dtype=torch.qint8)
    assert "quantised" in caveats(model)[0]


@pytest.mark.parametrize(("limit", "sync"), [(8, Sync.UNOBSERVED), (64, Sync.CERTIFIED)])
def test_positions_that_depend_on_the_longest_row(limit: int, sync: Sync) -> None:
    model = dynamic_rope(limit)
    assert length_limit(model) == limit
    judgements = judged(model)
    assert judgements[0].sync is sync
    if sync is Sync.UNOBSERVED:
        assert "depends on the longest row" in judgements[0].reason


def test_training_mode_is_not_observed() -> None:
    model = random_model("gpt2", torch.float32, 64)
    model.train()
    try:
        assert {one.sync for one in judged(model)} == {Sync.UNOBSERVED}
    finally:
        model.eval()


def test_weights_edited_for_the_length_of_a_call() -> None:
    """Put back before the call ends, they leave the model as it was; what was computed meanwhile was another model's."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**SMALL, max_position_embeddings=64)).eval().requires_grad_(False)
    weight = model.model.layers[0].mlp.up_proj.weight
    kept = weight.clone()
    with Recorder(model) as recorder:
        weight.mul_(1.5)
        outputs = greedy_batch.decode(
            model, None, None, PROMPTS, max_new_tokens=6, draft_tokens=0, eos_token_ids=set(), pad_token_id=0
        )
        weight.copy_(kept)
    for one in judge(recorder.trace, trace_streams(recorder.trace, PROMPTS, outputs)):
        assert one.sync is Sync.UNOBSERVED
        assert "weights" in one.reason
