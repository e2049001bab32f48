"""Recordings of the bundled target's own greedy outputs, and faults put into them."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

from specaudit.decoders import greedy
from specaudit.models.loading import load_target
from specaudit.models.options import LoadOptions
from tests.cli.command import Result, specaudit
from tests.replay.recordings import write

PROMPTS = ("A generator is", "The method returns", "def add(a, b):", "Example of a loop", "What is None?")
END = 3
"""An end-of-sequence id of the bundled target; 0 is the other."""


@cache
def _outputs() -> list[dict[str, Any]]:
    target = load_target("bundled:llama", options=LoadOptions(device="cpu"))
    prompts = [target.tokenizer(text)["input_ids"] for text in PROMPTS]
    outputs = greedy.decode(
        target.model, None, None, prompts,
        max_new_tokens=12, draft_tokens=0, eos_token_ids=set(target.eos_token_ids), pad_token_id=0,
    )  # fmt: skip
    assert outputs[-1] == [END]
    return [
        {"id": f"q{number}", "prompt_ids": prompt, "output_ids": output}
        for number, (prompt, output) in enumerate(zip(prompts, outputs, strict=True))
    ]


def greedy_lines() -> list[dict[str, Any]]:
    """Return the lines of a recording in which every token is the target's argmax."""
    return copy.deepcopy(_outputs())


def changed(number: int, **fields: Any) -> list[dict[str, Any]]:
    """Return the recording with fields of one line replaced."""
    lines = greedy_lines()
    lines[number] |= fields
    return lines


def replaced(number: int, place: int, token: int) -> list[dict[str, Any]]:
    """Return the recording with one token replaced."""
    lines = greedy_lines()
    lines[number]["output_ids"][place] = token
    return lines


def judged(recording: list[Any], *options: str, reference: list[Any] | None = None) -> Result:
    """Judge a recording by the bundled target with the command."""
    against = () if reference is None else ("--reference", write("b.jsonl", reference))
    return specaudit("replay", write("a.jsonl", recording), "--target", "bundled:llama", *against, *options)
