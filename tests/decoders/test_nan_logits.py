"""A target that computes NaN: an argmax of NaN is a token like any other, so nothing may be called identical."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import torch

from specaudit.decoders import greedy
from tests.cli.command import specaudit
from tests.models.tiny_models import save_model, tiny_model, tiny_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = {"max_new_tokens": 4, "draft_tokens": 1, "eos_token_ids": set(), "pad_token_id": 1}


def poisoned() -> torch.nn.Module:
    """Return a model that computes NaN once it has read the letter x."""
    model = tiny_model("llama")
    (token,) = tiny_tokenizer()("x")["input_ids"]
    with torch.no_grad():
        model.get_input_embeddings().weight[token] = torch.nan
    return model


def test_the_reference_says_where() -> None:
    model = poisoned()
    (token,) = tiny_tokenizer()("x")["input_ids"]
    with pytest.raises(greedy.NanLogitsError, match="the target's logits for output token 0 are NaN"):
        greedy.decode(model, None, None, [[9, token, 12]], **OPTIONS)


def test_cases_without_a_reference_are_unmeasured(in_folder: Path) -> None:
    save_model(in_folder / "model", poisoned(), tiny_tokenizer())
    (in_folder / "prompts.txt").write_text("abc\nan x in it\nbcd\ncde\n")
    result = specaudit(
        "run", "--target", "model", "--draft", "layers:2", "--decoder", "greedy,greedy-batch,eqspec", "--prompts",
        "prompts.txt", "--batch-size", "2", "--max-new-tokens", "4", "--ignore-eos", "--out", "run",
    )  # fmt: skip
    cases = [json.loads(line) for line in (in_folder / "run" / "samples.jsonl").read_text().splitlines()]
    without = [case for case in cases if case["reference_ids"] == []]
    assert without
    assert {case["verdict"] for case in without} == {"unmeasured"}
    for case in without:
        assert case["first_divergence"] is None
        assert case["partial_match"] is None
        assert "NaN" in case["error"]
    assert result.exit_code != 0
    assert "no reference: the target's logits for output token 0 are NaN" in " ".join(result.stdout.split())


def test_a_target_that_knows_nothing_but_nan_is_no_evidence(in_folder: Path) -> None:
    model = tiny_model("llama")
    with torch.no_grad():
        model.get_output_embeddings().weight.fill_(torch.nan)
    save_model(in_folder / "model", model, tiny_tokenizer())
    (in_folder / "prompts.txt").write_text("abc\nbcd\n")
    result = specaudit(
        "run", "--target", "model", "--draft", "stress:0.2", "--decoder", "greedy-batch,eqspec", "--prompts",
        "prompts.txt", "--batch-size", "2", "--max-new-tokens", "4", "--out", "run",
    )  # fmt: skip
    assert result.exit_code == 3
    assert result.stdout.splitlines()[-1].startswith("specaudit: no-evidence (exit 3): 4 of 4 cases unmeasured")
