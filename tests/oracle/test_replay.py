"""The oracle against an uncached float64 forward of every prefix: architectures, windows, padding, ties, budgets, state."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM

from specaudit.faults.authority import uncached_greedy
from specaudit.faults.random_models import BUILDERS, BYPASSING_BUILDERS, VOCABULARY, WINDOW, random_model
from specaudit.oracle.replay import copy_in, replay
from tests.oracle.replayed import checked, prompted, truths

if TYPE_CHECKING:
    from typing import Any

    from transformers import PreTrainedModel

    from specaudit.core.scores import PromptedOutput

ARCHITECTURES = [*BUILDERS, *BYPASSING_BUILDERS]
PROMPTS = [[5], [7, 0, 0, 9], [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], [0, 0, 0], [11, 12]]


def greedy_outputs(model: PreTrainedModel, lengths: list[int]) -> list[PromptedOutput]:
    return [
        prompted(prompt, uncached_greedy(model, prompt, max_new_tokens=length))
        for prompt, length in zip(PROMPTS, lengths, strict=True)
    ]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_greedy_outputs_are_the_argmax_throughout(architecture: str) -> None:
    model = random_model(architecture)
    outputs = greedy_outputs(model, [3 * WINDOW, 5, 2 * WINDOW, 0, 1])  # windows are crossed; one output is empty
    replays = checked(model, outputs)
    assert all(not found.departures and set(found.regrets) <= {0.0} for found in replays)
    assert replays[3].scores == ()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_replaced_token_is_found_at_its_place(architecture: str) -> None:
    model = random_model(architecture)
    outputs = greedy_outputs(model, [3 * WINDOW, 5, 2 * WINDOW, 4, 1])
    for number, place in ((0, 2 * WINDOW), (1, 0), (2, 2 * WINDOW - 1), (4, 0)):
        spoilt = list(outputs)
        ids = list(outputs[number].output_ids)
        ids[place] = (ids[place] + 17) % VOCABULARY
        # what follows is what the model goes on with, so that this token alone is wrong
        start = [*outputs[number].prompt_ids, *ids[: place + 1]]
        rest = uncached_greedy(model, start, max_new_tokens=len(ids) - place - 1)
        spoilt[number] = prompted(outputs[number].prompt_ids, [*ids[: place + 1], *rest])
        replays = checked(model, spoilt)
        (departure,) = replays[number].departures
        assert departure.index == place
        assert departure.argmax_id == outputs[number].output_ids[place]
        assert departure.regret > 0.0
        assert not any(found.departures for other, found in enumerate(replays) if other != number)


@st.composite
def random_calls(draw: st.DrawFn) -> tuple[list[PromptedOutput], dict[str, Any]]:
    ids = st.integers(0, VOCABULARY - 1)
    outputs = st.builds(prompted, st.lists(ids, min_size=1, max_size=2 * WINDOW), st.lists(ids, max_size=2 * WINDOW))
    options = {
        "pad_token_id": draw(ids),
        "token_budget": draw(st.sampled_from([1, 30, 100, 10_000])),
        "logit_budget": draw(st.sampled_from([1, VOCABULARY, 5 * VOCABULARY, 10**6])),
    }
    return draw(st.lists(outputs, max_size=6)), options


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gemma3", "opt"])
@settings(max_examples=25)
@given(call=random_calls())
def test_any_output_is_scored_as_the_authority_does(
    architecture: str, call: tuple[list[PromptedOutput], dict[str, Any]]
) -> None:
    outputs, options = call
    checked(random_model(architecture), outputs, **options)


@pytest.mark.parametrize("architecture", ["llama", "opt", "bloom", "gemma3"])
def test_the_pad_token_decides_nothing(architecture: str) -> None:
    model = random_model(architecture)
    outputs = [prompted(prompt, [0, 5, 0, 2][: number + 1]) for number, prompt in enumerate(PROMPTS[:4])]
    assert len({replay(model, outputs, pad_token_id=pad) for pad in (0, 2, 63)}) == 1


def test_the_budgets_bound_every_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model("llama")
    shapes, heads = [], []
    real = model.forward

    def forward(**arguments: Any) -> Any:
        output = real(**arguments)
        shapes.append(tuple(arguments["input_ids"].shape))
        heads.append(tuple(output.logits.shape))
        assert "past_key_values" not in arguments
        assert output.past_key_values is None
        return output

    monkeypatch.setattr(model, "forward", forward)
    outputs = [prompted(range(1, 1 + length), range(length)) for length in (1, 2, 3, 8, 9, 30)]
    replay(model, outputs, pad_token_id=0, token_budget=40, logit_budget=12 * VOCABULARY)
    # longest first; its 30 tokens take three forwards, as the budget has logits for 12
    assert shapes == [(1, 59), (1, 59), (1, 59), (1, 17), (2, 15), (2, 3)]
    assert heads == [(1, count, VOCABULARY) for count in (12, 12, 6, 9, 11, 3)]


def test_equal_logits_share_the_best_rank() -> None:
    model = copy.deepcopy(random_model("llama"))
    best = uncached_greedy(model, [5, 6, 7], max_new_tokens=1)[0]
    other = (best + 1) % VOCABULARY
    head = model.get_output_embeddings()
    head.weight[other] = head.weight[best]
    worse = (best + 2) % VOCABULARY
    replays = replay(model, [prompted([5, 6, 7], [token]) for token in (best, other, worse)], pad_token_id=0)
    assert [found.scores[0].rank for found in replays[:2]] == [0, 0]
    assert [found.regrets for found in replays[:2]] == [(0.0,), (0.0,)]
    assert not replays[0].departures + replays[1].departures
    assert replays[2].scores[0].rank >= 2


def test_another_type_computes_in_a_copy() -> None:
    model = random_model("llama", torch.float32)
    outputs = greedy_outputs(random_model("llama"), [20, 5, 9, 3, 1])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    wide = replay(model, outputs, pad_token_id=0, dtype=torch.float64)
    assert wide == replay(copy_in(model, torch.float64), outputs, pad_token_id=0)
    truth = truths(copy_in(model, torch.float64), outputs[0])
    for score, one in zip(wide[0].scores, truth, strict=True):
        assert abs(score.largest_logit - max(one.logits)) < 1e-12
    assert model.dtype == torch.float32
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert copy_in(model, torch.float32) is model


def test_the_model_is_left_as_found() -> None:
    model = copy.deepcopy(random_model("gpt2"))
    model.train()
    model.transformer.h[1].eval()
    model.transformer.drop.p = 0.5
    modes = [module.training for module in model.modules()]
    generator, settings_ = torch.get_rng_state(), copy.deepcopy(model.config.to_dict())
    outputs = greedy_outputs(random_model("gpt2"), [6, 2, 4, 0, 1])
    assert not any(found.departures for found in replay(model, outputs, pad_token_id=0))
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), generator)
    assert model.config.to_dict() == settings_
    assert all(not module._forward_pre_hooks for module in model.modules())
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()


def test_a_failure_leaves_the_model_as_found(monkeypatch: pytest.MonkeyPatch) -> None:
    model = copy.deepcopy(random_model("llama")).train()
    monkeypatch.setattr(model.lm_head, "forward", lambda states: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        replay(model, [prompted([5], [6])], pad_token_id=0)
    assert model.training
    assert not model.lm_head._forward_pre_hooks


def test_processors_of_the_generation_config_are_off() -> None:
    model = copy.deepcopy(random_model("llama"))
    outputs = greedy_outputs(model, [12, 5, 9, 3, 1])
    before = replay(model, outputs, pad_token_id=0)
    model.generation_config.repetition_penalty = 5.0
    model.generation_config.suppress_tokens = list(outputs[0].output_ids)
    assert replay(model, outputs, pad_token_id=0) == before


def test_logits_that_are_not_numbers_are_an_error_and_no_argmax() -> None:
    model = copy.deepcopy(random_model("llama"))
    model.get_input_embeddings().weight[9] = float("nan")
    spoilt, sound = replay(model, [prompted([5, 6], [7, 9, 8]), prompted([5, 6], [7])], pad_token_id=0)
    assert spoilt.error == "the target's logits are not numbers"
    assert spoilt.scores == ()
    assert sound.error is None


def test_a_token_that_is_impossible_has_infinite_regret() -> None:
    model = copy.deepcopy(random_model("llama"))
    model.lm_head.register_forward_hook(
        lambda module, arguments, logits: logits.index_fill(-1, torch.tensor(7), -torch.inf)
    )
    (found,) = replay(model, [prompted([5, 6], [7])], pad_token_id=0)
    assert found.regrets == (float("inf"),)
    assert found.scores[0].rank == VOCABULARY - 1


@pytest.mark.parametrize(
    ("prompt", "output", "message"),
    [([], [1], "output 0 has an empty prompt"), ([1], [64], "outside the vocabulary of 64"), ([-1], [], "holds id -1")],
)
def test_what_cannot_be_replayed_is_refused(prompt: list[int], output: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replay(random_model("llama"), [prompted(prompt, output)], pad_token_id=0)


def test_lengths_that_change_the_positions_are_an_error() -> None:
    scaling = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4,
        max_position_embeddings=16, rope_scaling=scaling,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    outputs = [prompted(range(1, 11), range(7)), prompted(range(1, 11), range(8)), prompted([1], [2])]
    at_limit, beyond, short = replay(model, outputs, pad_token_id=0)
    assert at_limit.error is short.error is None
    assert beyond.error == "the model's position encoding depends on the length beyond 16 tokens"


def test_nothing_to_replay_is_no_matter() -> None:
    assert replay(random_model("llama"), [], pad_token_id=0) == ()
