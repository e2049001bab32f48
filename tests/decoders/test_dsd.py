"""DSD does what its description says, no better and no worse, and is caught for it."""

from __future__ import annotations

import json
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

import pytest

from specaudit.decoders import dsd
from specaudit.faults.authority import uncached_greedy, until_eos
from specaudit.faults.random_models import VOCABULARY, random_draft, random_model
from tests.cli.command import specaudit

if TYPE_CHECKING:
    from pathlib import Path


def test_at_batch_1_the_output_is_the_drafts() -> None:
    random = Random(2)
    target = random_model("llama")
    for scale in (0.0, 0.02, 0.1):
        draft = random_draft("llama", scale)
        for draft_tokens in (1, 3, 8):
            prompt = [random.randrange(VOCABULARY) for _ in range(random.randint(1, 12))]
            continuation = uncached_greedy(draft, prompt, max_new_tokens=15)
            eos = {continuation[random.randrange(15)]}
            (output,) = dsd.decode(
                target,
                draft,
                None,
                [prompt],
                max_new_tokens=15,
                draft_tokens=draft_tokens,
                eos_token_ids=eos,
                pad_token_id=0,
            )
            assert output == until_eos(continuation, eos)


def test_padding_only_grows_and_is_attended_to() -> None:
    prompts = [[5, 9, 2, 40], [7], [8, 30]]
    draft = random_draft("llama", 0.05)
    widths: list[int] = []
    padded: list[list[int]] = []

    def note(module, arguments, options) -> None:
        widths.append(options["input_ids"].shape[1])
        padded.append([row[:-3].count(0) for row in options["input_ids"].tolist()])
        assert options.get("attention_mask") is None
        assert options.get("position_ids") is None

    target = random_model("llama")
    handle = target.register_forward_pre_hook(note, with_kwargs=True)
    try:
        dsd.decode(target, draft, None, prompts, max_new_tokens=12, draft_tokens=3, eos_token_ids=set(), pad_token_id=0)
    finally:
        handle.remove()
    assert widths == sorted(widths)
    for earlier, later in pairwise(padded):
        assert all(one <= other for one, other in zip(earlier, later, strict=True))
    assert min(padded[-1]) > 0 or max(padded[-1]) > max(padded[0])


def test_caught_at_every_batch_size(in_folder: Path) -> None:
    result = specaudit("run", "--decoder", "dsd", "--batch-size", "1,4,8", "--limit", "8", "--max-new-tokens", "24")
    assert result.exit_code == 1
    report = json.loads(next((in_folder / "runs").glob("*/report.json")).read_text())
    alone, four, eight = report["arms"]
    assert alone["verdicts"]["diverged"] == 8
    for arm in (four, eight):
        assert arm["verdicts"]["diverged"] >= 7
        assert arm["violated_checks"]["POS"] >= 6
        assert arm["violated_checks"]["RECT"] >= 6
        assert arm["first_violation"]["actual"] > arm["first_violation"]["expected"]


@pytest.mark.parametrize("draft", ["stress:0.4", "ngram"])
def test_needs_a_draft_model(in_folder: Path, draft: str) -> None:
    result = specaudit("run", "--decoder", "dsd", "--draft", draft)
    assert result.exit_code == 2
    assert f"'dsd' needs a draft model, '{draft}' is none" in result.stderr
