"""SpecBench: turns and references of made-up questions, and the published file where `SPECAUDIT_SPECBENCH` names it."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from specaudit.core.errors import InputError, UsageError
from specaudit.prompts import load_prompts

QUESTIONS = [
    {"question_id": 1, "category": "writing", "turns": ["Write.", "Rewrite."]},
    {"question_id": 2, "category": "math", "turns": ["Add.", "Double."], "reference": ["2", "4"]},
    {"question_id": 3, "category": "extraction", "turns": ["Find.", "More."], "reference": ["x", ""]},
    {"question_id": 4, "category": "rag", "turns": ["Answer."], "reference": [["one", "two"]]},
]


def _file(folder: Path, questions: list[dict[str, Any]]) -> str:
    path = folder / "question.jsonl"
    path.write_text("".join(json.dumps(question) + "\n" for question in questions))
    return f"specbench:{path}"


def test_references_run_beside_the_turns(tmp_path: Path) -> None:
    spec = _file(tmp_path, QUESTIONS)
    assert [prompt.gold for prompt in load_prompts(spec).prompts] == [None, "2", "x", "one\ntwo"]
    assert [prompt.gold for prompt in load_prompts(spec, turn=2).prompts] == [None, "4", None]


def test_second_turns_wait_for_an_answer(tmp_path: Path) -> None:
    prompts = load_prompts(_file(tmp_path, QUESTIONS), turn=2).prompts
    assert [(p.prompt_id, p.text, p.follow_up) for p in prompts] == [
        ("1-turn2", "Write.", "Rewrite."),
        ("2-turn2", "Add.", "Double."),
        ("3-turn2", "Find.", "More."),
    ]


def test_without_any_second_turn_there_is_nothing_to_ask(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no question of the file has a second turn"):
        load_prompts(_file(tmp_path, QUESTIONS[3:]), turn=2)


@pytest.mark.parametrize("turn", [0, 3, -1])
def test_there_are_two_turns(turn: int) -> None:
    with pytest.raises(UsageError, match=f"no turn {turn}"):
        load_prompts("bundled", turn=turn)


@pytest.mark.parametrize("turns", ["Write.", [], ["Write.", 2], ["Write.", ""], [None]])
@pytest.mark.parametrize("turn", [1, 2])
def test_turns_are_texts(tmp_path: Path, turns: Any, turn: int) -> None:
    with pytest.raises(InputError, match="'turns' is not a list of texts") as caught:
        load_prompts(_file(tmp_path, [QUESTIONS[0], QUESTIONS[1] | {"turns": turns}]), turn=turn)
    assert (caught.value.where or "").endswith("question.jsonl:2")


@pytest.fixture
def specbench() -> str:
    """Return the published file as `--prompts` takes it."""
    path = os.environ.get("SPECAUDIT_SPECBENCH")
    if not path:
        pytest.skip("SPECAUDIT_SPECBENCH does not say where the SpecBench file is")
    assert Path(path).is_file(), "SPECAUDIT_SPECBENCH names a file that is not there"
    return f"specbench:{path}"


def test_the_published_file_is_read(specbench: str) -> None:
    prompts = load_prompts(specbench).prompts
    assert len(prompts) == 480
    sizes = Counter(prompt.category for prompt in prompts)
    assert sum(size == 80 for size in sizes.values()) == 5  # translation, summarization, qa, math_reasoning, rag
    assert sum(size == 10 for size in sizes.values()) == 8  # the categories of MT-bench
    assert Counter(prompt.category for prompt in prompts if prompt.gold)["translation"] == 80
    assert all(prompt.gold is None for prompt in prompts if prompt.category == "qa")


def test_the_published_file_has_80_second_turns(specbench: str) -> None:
    prompts = load_prompts(specbench, turn=2).prompts
    assert len(prompts) == 80
    assert all(prompt.follow_up for prompt in prompts)


def test_the_published_file_can_be_cut_down(specbench: str) -> None:
    thirteen = load_prompts(specbench, limit=13).prompts
    assert len({prompt.category for prompt in thirteen}) == 13
    coding = load_prompts(specbench, categories=["coding", "math"], sample=7, seed=3).prompts
    assert len(coding) == 7
    assert {prompt.category for prompt in coding} <= {"coding", "math"}
