"""Prompt options of `specaudit run`, end to end on the bundled pair."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

from transformers import AutoTokenizer

from specaudit.core.run_directory import RunDirectory
from specaudit.models.bundled import bundled_model
from tests.cli.command import specaudit

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from specaudit.core.records import CaseResult

BRIEF = ("--decoder", "greedy-batch", "--batch-size", "2", "--max-new-tokens", "6", "--out", "run")


def _cases(folder: Path, *options: str) -> tuple[CaseResult, ...]:
    result = specaudit("run", *options, *BRIEF)
    assert result.exit_code == 0, result.stderr
    return RunDirectory(folder / "run").read_cases()


def test_a_second_turn_follows_the_references_own_answer(in_folder: Path) -> None:
    question = {
        "question_id": 7,
        "category": "c",
        "turns": ["What is a list?", "And a tuple?"],
        "reference": ["l", "t"],
    }
    (in_folder / "question.jsonl").write_text(json.dumps(question))
    (first,) = _cases(in_folder, "--prompts", "specbench:question.jsonl", "--chat-template")
    (in_folder / "run").rename(in_folder / "first")
    (second,) = _cases(in_folder, "--prompts", "specbench:question.jsonl", "--turn", "2")
    assert (first.prompt_id, first.gold) == ("7", "l")
    assert (second.prompt_id, second.gold) == ("7-turn2", "t")
    tokenizer = AutoTokenizer.from_pretrained(bundled_model("llama", "target"))
    turns = [
        {"role": "user", "content": "What is a list?"},
        {"role": "assistant", "content": tokenizer.decode(first.reference_ids, skip_special_tokens=True)},
        {"role": "user", "content": "And a tuple?"},
    ]
    text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert list(second.prompt_ids) == tokenizer(text, add_special_tokens=False)["input_ids"]
    assert len(first.reference_ids) > 1


def test_a_piped_table_of_options(in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [{"id": str(n), "text": f"Line {n}", "category": "odd" if n % 2 else "even", "gold": n} for n in range(12)]
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    cases = _cases(in_folder, "--prompts", "-", "--category", "odd", "--sample", "3", "--seed", "5")
    assert len(cases) == 3
    assert all(case.category == "odd" and case.gold == case.prompt_id for case in cases)
    plan = json.loads((in_folder / "run" / "manifest.json").read_text())["plan"]
    assert (plan["categories"], plan["sample"], plan["prompts"]) == (["odd"], 3, "-")
