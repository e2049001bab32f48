"""`--prompts -`: what is piped in, as lines or JSON Lines."""

from __future__ import annotations

import io

import pytest

from specaudit.core.errors import InputError, UsageError
from specaudit.prompts import load_prompts


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Pipe:
    return Pipe(monkeypatch)


class Pipe:
    """Puts bytes into standard input, in a locale that is not UTF-8."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def put(self, content: bytes) -> None:
        self.monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="latin-1"))


def test_lines_are_prompts(pipe: Pipe) -> None:
    pipe.put("one\n\nzwölf 🎉 \r\n".encode())
    loaded = load_prompts("-")
    assert loaded.name == "standard input"
    assert [(p.prompt_id, p.text, p.source) for p in loaded.prompts] == [
        ("L1", "one", "standard input:1"),
        ("L3", "zwölf 🎉 ", "standard input:3"),
    ]


def test_a_brace_at_the_beginning_means_json_lines(pipe: Pipe) -> None:
    pipe.put(b'\n {"question": "one", "answer": "two"}\n')
    (prompt,) = load_prompts("-", field="question").prompts
    assert (prompt.prompt_id, prompt.text, prompt.gold) == ("L2", "one", "two")


def test_specbench_is_recognised(pipe: Pipe) -> None:
    pipe.put(b'{"question_id": 1, "category": "c", "turns": ["one", "two"]}\n')
    assert load_prompts("-", turn=2).prompts[0].follow_up == "two"


def test_a_bad_line_is_named(pipe: Pipe) -> None:
    pipe.put(b'{"text": "one"}\n{"text"}\n')
    with pytest.raises(InputError, match="not JSON") as caught:
        load_prompts("-")
    assert caught.value.where == "standard input:2"
    pipe.put(b"one\n\xff\n")
    with pytest.raises(InputError, match="0xff") as caught:
        load_prompts("-")
    assert caught.value.where == "standard input:2"


@pytest.mark.parametrize("content", [b"", b" \n\n"])
def test_nothing_is_refused(pipe: Pipe, content: bytes) -> None:
    pipe.put(content)
    with pytest.raises(InputError, match="empty") as caught:
        load_prompts("-")
    assert caught.value.where == "--prompts -"


def test_a_closed_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="closed"):
        load_prompts("-")


def test_lines_have_no_field_to_choose(pipe: Pipe) -> None:
    pipe.put(b"one\n")
    with pytest.raises(UsageError, match="plain texts"):
        load_prompts("-", field="text")
