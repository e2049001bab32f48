"""Chats: JSON arrays, ShareGPT's spelling, and the assistant's last turn as the gold answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from specaudit.core.errors import InputError
from specaudit.prompts import load_prompts

if TYPE_CHECKING:
    from pathlib import Path

USER = {"role": "user", "content": "Hello"}
ASSISTANT = {"role": "assistant", "content": "Hello yourself"}


def _json(folder: Path, content: str | list[Any], name: str = "chats.json") -> str:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")
    return str(path)


def test_an_array_takes_objects_chats_and_texts(tmp_path: Path) -> None:
    items = [{"id": "a", "category": "c", "messages": [USER]}, [USER, ASSISTANT, USER], "plain", {"text": "field"}]
    prompts = load_prompts(_json(tmp_path, items)).prompts
    assert [prompt.prompt_id for prompt in prompts] == ["a", "N2", "N3", "N4"]
    assert [len(prompt.messages) for prompt in prompts] == [1, 3, 0, 0]
    assert [prompt.text for prompt in prompts] == [None, None, "plain", "field"]
    assert prompts[0].category == "c"


def test_items_are_named_by_line_and_place(tmp_path: Path) -> None:
    path = _json(tmp_path, '\n[ "one", "two\\n",\n\n  {"text":\n "three"}\n, "four" ]\n')
    sources = [prompt.source.removeprefix(str(tmp_path)) for prompt in load_prompts(path).prompts]
    assert sources == [f"/chats.json:{where}" for where in ("2 (item 1)", "2 (item 2)", "4 (item 3)", "6 (item 4)")]


def test_sharegpt_names_its_speakers_otherwise(tmp_path: Path) -> None:
    turns = [("system", "Be brief."), ("human", "One?"), ("gpt", "1"), ("user", "Two?"), ("gpt", "2")]
    item = {"id": "x_0", "conversations": [{"from": speaker, "value": text} for speaker, text in turns]}
    (prompt,) = load_prompts(_json(tmp_path, [item])).prompts
    assert [turn.role for turn in prompt.messages] == ["system", "user", "assistant", "user"]
    assert prompt.gold == "2"


@pytest.mark.parametrize("name", ["chats.json", "chats.jsonl"])
def test_the_assistants_last_turn_is_the_answer(tmp_path: Path, name: str) -> None:
    def read(item: dict[str, Any]) -> Any:
        content = json.dumps([item]) if name.endswith(".json") else json.dumps(item)
        return load_prompts(_json(tmp_path, content, name)).prompts[0]

    assert read({"messages": [USER, ASSISTANT]}).gold == "Hello yourself"
    assert len(read({"messages": [USER, ASSISTANT]}).messages) == 1
    assert read({"messages": [USER, ASSISTANT], "answer": "Hi"}).gold == "Hi"
    assert read({"messages": [USER]}).gold is None


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ('{"messages": []}', "1", "Expecting '['"),
        ("[\n", "2", "Expecting value"),
        ('["a",\n]', "2", "Expecting value"),
        ('["a"\n"b"]', "2", "Expecting ','"),
        ('["a"]\n\nx', "3", "Extra data"),
        ('["a", tru]', "1", "Expecting value at column 7"),
        ("[]", "1", "the array is empty"),
        ('["a",\n3]', "2 (item 2)", "neither an object nor a chat but 3"),
        ('["a", ""]', "1 (item 2)", "'text' is empty"),
        ('["a", []]', "1 (item 2)", "'messages' is empty"),
        ('["a",\n{"n": 1}]', "2 (item 2)", "no field 'prompt'"),
        ('["a",\n[{"role": "user",\n"content": 1}]]', "2 (item 2)", "turn 1"),
        ('["a",\n[{"role": "assistant", "content": "b"}]]', "2 (item 2)", "no turn to answer"),
        ('["a",\n[{"role": "tool", "content": "b"}]]', "2 (item 2)", "unknown role 'tool'"),
        ('["a",\n{"id": "N1", "text": "b"}]', "2 (item 2)", "'N1' is already taken by"),
    ],
)
def test_a_bad_item_is_named(tmp_path: Path, content: str, line: str, problem: str) -> None:
    path = _json(tmp_path, content)
    with pytest.raises(InputError) as caught:
        load_prompts(path)
    assert problem in caught.value.message
    assert caught.value.where == f"{path}:{line}"
    assert caught.value.way_out


def test_nesting_beyond_measure_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not usable JSON"):
        load_prompts(_json(tmp_path, "[" * 200_000))
