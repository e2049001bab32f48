"""Readers: what they accept, and that what they refuse is named with its line and a way out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from specaudit.core.errors import InputError, UsageError
from specaudit.core.prompt import Message
from specaudit.prompts import load_prompts

if TYPE_CHECKING:
    from pathlib import Path

CHAT = [{"role": "user", "content": "Hello"}]
"""The shortest chat."""

SPECBENCH = [
    {"question_id": 81, "category": "writing", "turns": ["Write.", "Rewrite."]},
    {"question_id": 82, "category": "writing", "turns": ["Draft."]},
    {"question_id": 91, "category": "math", "turns": ["Add."], "reference": ["2"]},
]


def _write(folder: Path, name: str, content: str | bytes) -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def _jsonl(folder: Path, *records: Any) -> str:
    return _write(folder, "set.jsonl", "".join(json.dumps(record) + "\n" for record in records))


def test_text_has_one_prompt_a_line_named_by_its_line(tmp_path: Path) -> None:
    loaded = load_prompts(_write(tmp_path, "some.txt", "first\n\n   \n  second \nthird"))
    assert loaded.name == "some.txt"
    assert [(prompt.prompt_id, prompt.text) for prompt in loaded.prompts] == [
        ("L1", "first"),
        ("L4", "  second "),
        ("L5", "third"),
    ]
    assert loaded.prompts[1].source == f"{tmp_path}/some.txt:4"


def test_a_line_separator_inside_a_prompt_does_not_split_it(tmp_path: Path) -> None:
    loaded = load_prompts(_write(tmp_path, "some.txt", "one\u2028still one\x0cand on\ntwo\n"))
    assert [prompt.text for prompt in loaded.prompts] == ["one\u2028still one\x0cand on", "two"]


def test_mark_and_line_endings_do_not_count(tmp_path: Path) -> None:
    plain = load_prompts(_write(tmp_path, "a.txt", "one\ntwo\n"))
    windows = load_prompts(_write(tmp_path, "b.TXT", b"\xef\xbb\xbfone\r\ntwo"))
    assert windows.digest == plain.digest


def test_jsonl_takes_texts_and_chats(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    loaded = load_prompts(
        _jsonl(
            tmp_path,
            {"id": "a", "prompt": "one", "text": "not this"},
            {"text": "two", "category": "c"},
            {"id": 7, "messages": chat},
            {"question_id": 8, "id": 9, "prompt": chat[1:]},
        )
    )
    assert [prompt.prompt_id for prompt in loaded.prompts] == ["a", "L2", "7", "8"]
    assert [prompt.text for prompt in loaded.prompts] == ["one", "two", None, None]
    assert loaded.prompts[1].category == "c"
    assert loaded.prompts[2].messages == (
        Message(role="system", content="Be brief."),
        Message(role="user", content="Hello"),
    )
    assert len(loaded.prompts[3].messages) == 1


def test_a_named_field_is_taken(tmp_path: Path) -> None:
    path = _jsonl(tmp_path, {"prompt": "no", "question": "yes"})
    assert load_prompts(path, field="question").prompts[0].text == "yes"


@pytest.mark.parametrize("prefix", ["", "specbench:"])
def test_specbench_gives_first_turns(tmp_path: Path, prefix: str) -> None:
    loaded = load_prompts(prefix + _jsonl(tmp_path, *SPECBENCH))
    assert [(p.prompt_id, p.category, p.text) for p in loaded.prompts] == [
        ("81", "writing", "Write."),
        ("82", "writing", "Draft."),
        ("91", "math", "Add."),
    ]


def test_a_named_field_overrules_the_look_of_specbench(tmp_path: Path) -> None:
    path = _jsonl(tmp_path, SPECBENCH[0] | {"prompt": "mine"})
    assert load_prompts(path, field="prompt").prompts[0].text == "mine"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not usable JSON"),
        ("[1]", "not a JSON object but [1]"),
        ('{"txt": "a", "n": 1}', "no field 'prompt' or 'text' or 'messages' or 'conversations'; fields found: txt, n"),
        ('{"text": ""}', "'text' is empty"),
        ('{"messages": []}', "'messages' is empty"),
        ('{"text": null}', "neither a text nor a chat: null"),
        ('{"text": 3}', "neither a text nor a chat: 3"),
        ('{"messages": ["hi"]}', "turn 1"),
        ('{"messages": [{"role": "user", "content": "a"}, {"role": "user"}]}', "turn 2"),
        ('{"messages": [{"role": "usr", "content": "a"}]}', "unknown role 'usr'"),
        ('{"text": "a\\ud800"}', "U+D800 at character 2"),
        ('{"id": 1.5, "text": "a"}', "'id' is 1.5"),
        ('{"id": true, "text": "a"}', "'id' is true"),
        ('{"id": " ", "text": "a"}', "cannot name a prompt"),
        ('{"category": ["a"], "text": "a"}', "cannot name a category"),
        ('{"messages": [{"role": "assistant", "content": "a"}]}', "no turn to answer"),
        ('{"conversations": [{"from": "humn", "value": "a"}]}', "unknown role 'humn'"),
        ('{"conversations": [{"from": "human", "content": "a"}]}', "turn 1"),
        ('{"id": "same", "text": "a"}', "'same' is already taken by"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, problem: str) -> None:
    path = _write(tmp_path, "set.jsonl", '{"id": "same", "text": "fine"}\n\n' + line + "\n")
    with pytest.raises(InputError) as caught:
        load_prompts(path)
    assert problem in caught.value.message
    assert caught.value.where == f"{path}:3"
    assert caught.value.way_out


def test_a_missing_field_names_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_prompts(_jsonl(tmp_path, {"question": "q", "answer": "a"}), field="questoin")
    assert "fields found: question, answer" in caught.value.message
    assert caught.value.way_out == "did you mean 'question'?"


@pytest.mark.parametrize("content", [b"", b"\n \r\n", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", ["set.txt", "set.jsonl", "set.json", "set.csv", "set.tsv"])
def test_an_empty_file_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(InputError, match="empty"):
        load_prompts(_write(tmp_path, name, content))


def test_bytes_that_are_not_utf8_are_located(tmp_path: Path) -> None:
    path = _write(tmp_path, "latin.txt", "eins\nzwei\nd\xfcr\n".encode("latin-1"))
    with pytest.raises(InputError, match="0xfc") as caught:
        load_prompts(path)
    assert caught.value.where == f"{path}:3"


@pytest.mark.parametrize("spec", ["missing.txt", "missing.csv", "specbench:missing.jsonl", "notes.md", "bundle", ""])
def test_what_cannot_be_read_has_a_way_out(tmp_path: Path, spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        load_prompts(spec)
    assert ".jsonl" in (caught.value.way_out or "")


def test_a_folder_is_not_a_prompt_file(tmp_path: Path) -> None:
    (tmp_path / "folder.txt").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        load_prompts(str(tmp_path / "folder.txt"))


@pytest.mark.parametrize(
    ("record", "problem"),
    [({"question_id": 1, "turns": ["a"]}, "no category"), (SPECBENCH[0] | {"turns": []}, "'turns'")],
)
def test_a_bad_specbench_line_is_named(tmp_path: Path, record: dict[str, Any], problem: str) -> None:
    path = _jsonl(tmp_path, SPECBENCH[2], record)
    with pytest.raises(InputError, match=problem) as caught:
        load_prompts(f"specbench:{path}")
    assert caught.value.where == f"{path}:2"


@pytest.mark.parametrize("spec", [None, "bundled", "bundled:96", "some.txt", "specbench:some.jsonl"])
def test_texts_and_specbench_have_no_field_to_choose(spec: str | None, in_folder: Path) -> None:
    _write(in_folder, "some.txt", "one")
    with pytest.raises(UsageError) as caught:
        load_prompts(spec, field="text")
    assert caught.value.where == "--field"


@pytest.mark.parametrize("ending", ["txt", "jsonl", "json", "csv"])
def test_files_other_than_specbench_have_no_second_turns(in_folder: Path, ending: str) -> None:
    contents = {"txt": "one", "jsonl": '{"text": "one"}', "json": '["one"]', "csv": "text\none"}
    with pytest.raises(UsageError, match="no second turns") as caught:
        load_prompts(_write(in_folder, f"set.{ending}", contents[ending]), turn=2)
    assert "specbench:FILE" in (caught.value.way_out or "")
