"""A target whose generation config changes greedy output: left out by default, applied to both sides on request.

The authority is transformers' own `generate` at batch 1 with the same config.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import GenerationConfig

from specaudit.core.errors import UsageError
from specaudit.decoders import bsp, eqspec, greedy, greedy_batch, hf_assisted
from specaudit.decoders.drafting import StressDraft
from specaudit.faults.random_models import VOCABULARY, random_draft, random_model
from specaudit.models.releases import RELEASE
from specaudit.settings import generation_settings, greedy_config
from tests.cli.command import specaudit
from tests.models.tiny_models import save_model, tiny_model, tiny_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

IS_RELEASE_4 = RELEASE < (5,)
EOS = [7, 21, 33]
CONFIGS: dict[str, dict[str, Any]] = {
    "penalty": {"repetition_penalty": 1.3},
    "everything": {
        "repetition_penalty": 1.3,
        "suppress_tokens": [3, 40, 41],
        "begin_suppress_tokens": [12, 50, 51, 52, 53],
        "min_new_tokens": 6,
        "no_repeat_ngram_size": 3,
        "bad_words_ids": [[9], [10, 11]],
    },
    "lengths": {"min_length": 14, "forced_eos_token_id": 21, "exponential_decay_length_penalty": (4, 1.4)},
    "biases": {"sequence_bias": [[[20], 4.0], [[5, 6], 9.0]], "encoder_repetition_penalty": 1.2},
}


def with_config(model: torch.nn.Module, settings_: dict[str, Any]) -> torch.nn.Module:
    """Return the model, its weights shared, with another generation config."""
    memo = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    copied = copy.deepcopy(model, memo)
    copied.generation_config = GenerationConfig(do_sample=True, temperature=0.7, eos_token_id=EOS, **settings_)
    return copied


def has_least_length(model: torch.nn.Module) -> bool:
    """Return whether a least length is set, with which assisted generation raises in transformers 4."""
    return any(getattr(model.generation_config, name) for name in ("min_length", "min_new_tokens"))


def transformers_own(model: torch.nn.Module, prompt: list[int], budget: int) -> list[int]:
    """Return what `generate` makes of the prompt with the model's own generation config, greedily."""
    ids = torch.tensor([prompt])
    output = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=budget,
        do_sample=False,
        temperature=1.0,
        pad_token_id=0,
    )
    return output[0, len(prompt) :].tolist()


@pytest.fixture(params=sorted(CONFIGS), scope="module")
def configured(request: pytest.FixtureRequest) -> torch.nn.Module:
    return with_config(random_model("llama"), CONFIGS[request.param])


prompts_of_tokens = st.lists(st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=10), min_size=1, max_size=4)


@pytest.mark.filterwarnings("ignore:Unfeasible length constraints")  # a budget below the least length
@settings(max_examples=12)
@given(prompts=prompts_of_tokens, budget=st.integers(1, 16), draft_tokens=st.integers(1, 6))
def test_exact_against_generate(
    configured: torch.nn.Module, prompts: list[list[int]], budget: int, draft_tokens: int
) -> None:
    expected = [transformers_own(configured, prompt, budget) for prompt in prompts]
    options = {
        "max_new_tokens": budget,
        "draft_tokens": draft_tokens,
        "eos_token_ids": set(EOS),
        "pad_token_id": 0,
        "generation_config": greedy_config(configured),
    }
    references = {tuple(prompt): output for prompt, output in zip(prompts, expected, strict=True)}
    stress = StressDraft(references, rate=0.3, seed=1, vocabulary_size=VOCABULARY)
    draft = random_draft("llama", 0.05)
    assert greedy.decode(configured, None, None, prompts, **options) == expected
    assert greedy_batch.decode(configured, None, None, prompts, **options) == expected
    assert eqspec.decode(configured, stress, None, prompts, **options) == expected
    assert eqspec.decode(configured, draft, None, prompts, **options) == expected
    if not (IS_RELEASE_4 and has_least_length(configured)):
        assert hf_assisted.decode(configured, draft, None, prompts, **options) == expected


def test_the_config_changes_the_output(configured: torch.nn.Module) -> None:
    plain = with_config(configured, {})
    prompts = [[5, 9, 2, 40], [7], [8, 30, 12]]
    assert [transformers_own(configured, prompt, 16) for prompt in prompts] != [
        transformers_own(plain, prompt, 16) for prompt in prompts
    ]


def test_a_faulty_decoder_stays_faulty() -> None:
    model = with_config(random_model("llama"), CONFIGS["everything"])
    prompts = [[5, 9, 2, 40, 11, 13], [7], [8, 30, 12]]
    options = {
        "max_new_tokens": 16, "draft_tokens": 3, "eos_token_ids": set(EOS), "pad_token_id": 0,
        "generation_config": greedy_config(model),
    }  # fmt: skip
    expected = greedy.decode(model, None, None, prompts, **options)
    assert bsp.decode(model, random_draft("llama", 0.05), None, prompts, **options) != expected


def test_only_what_changes_greedy_output_is_named() -> None:
    model = with_config(
        random_model("llama"), {"repetition_penalty": 1.0, "suppress_tokens": [], "min_length": 0, "top_p": 0.4}
    )
    assert generation_settings(model) == ()
    assert greedy_config(model).to_diff_dict().keys() <= {"transformers_version", "do_sample"}
    model = with_config(random_model("llama"), CONFIGS["penalty"])
    assert generation_settings(model) == ("repetition_penalty=1.3",)


@pytest.mark.parametrize("setting", [{"guidance_scale": 1.5}, {"stop_strings": ["x"]}])
def test_what_is_no_function_of_the_prefix_is_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="cannot be applied token by token"):
        greedy_config(with_config(random_model("llama"), setting))


@pytest.fixture
def model_folder(in_folder: Path) -> Path:
    """Return the folder of a tiny model with a tokenizer and a generation config that changes greedy output."""
    model = tiny_model("llama")
    model.generation_config = GenerationConfig(eos_token_id=EOS, **CONFIGS["everything"])
    save_model(in_folder / "model", model, tiny_tokenizer())
    (in_folder / "prompts.txt").write_text("one two three\nfour\nfive six\nseven one\n")
    return in_folder


RUN = ("run", "--target", "model", "--draft", "noisy:0.05", "--prompts", "prompts.txt", "--max-new-tokens", "12")


def test_by_default_settings_are_left_out_and_listed(model_folder: Path) -> None:
    result = specaudit(*RUN, "--decoder", "eqspec", "--batch-size", "4", "--out", "out")
    assert result.exit_code == 0, result.stdout
    shown = " ".join(result.stdout.split())
    assert "left out repetition_penalty=1.3" in shown
    assert "applied" not in shown


def test_applied_on_request_to_both_sides(model_folder: Path) -> None:
    assisted = "" if IS_RELEASE_4 else ",hf-assisted"
    options = ("--decoder", f"greedy,greedy-batch,eqspec{assisted}", "--batch-size", "1,4", "--use-generation-config")
    result = specaudit(*RUN, *options, "--out", "out")
    assert result.exit_code == 0, result.stdout
    shown = " ".join(result.stdout.split())
    assert "applied repetition_penalty=1.3" in shown
    assert "left out" not in shown
    plain = specaudit(*RUN, "--decoder", "eqspec", "--batch-size", "4", "--out", "plain")
    assert plain.exit_code == 0
    outputs = [
        {
            case["prompt_id"]: case["output_ids"]
            for case in map(json.loads, (model_folder / name / "samples.jsonl").read_text().splitlines())
        }
        for name in ("out", "plain")
    ]
    assert outputs[0] != outputs[1]
    assert all(not {3, 40, 41} & set(ids) for ids in outputs[0].values())


def test_refused_for_a_decoder_that_cannot_be_told(model_folder: Path) -> None:
    (model_folder / "theirs.py").write_text(
        "def decode(target, draft, tokenizer, prompts, *, max_new_tokens, draft_tokens, eos_token_ids, pad_token_id):\n"
        "    return []\n"
    )
    result = specaudit(*RUN, "--decoder", "theirs.py:decode", "--use-generation-config")
    assert result.exit_code == 2
    assert "cannot be told to apply the target's generation config" in result.stderr
