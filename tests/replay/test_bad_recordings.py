"""Recordings that cannot be read: named with file and line and a way out, exit code 2, no traceback, nothing printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import specaudit
from tests.replay.recordings import lines, replay, write

pytestmark = pytest.mark.usefixtures("in_folder")

LINE = lines(1)[0]


def spoilt(**fields: Any) -> str:
    """Return a line with fields replaced; None takes one away."""
    return json.dumps({name: value for name, value in (LINE | fields).items() if value is not None})


GOOD = spoilt()

# name: content of the file, line that is named (None for the file), part of the message
BAD: dict[str, tuple[bytes | str, int | None, str]] = {
    "empty file": ("", None, "the recording is empty"),
    "blank lines": ("\n \n\t\n", None, "the recording is empty"),
    "not UTF-8": (f"{GOOD}\n".encode() + b"\xff\xfe{}\n", 2, "byte 0xff is not UTF-8"),
    "UTF-16": (GOOD.encode("utf-16"), 1, "is not UTF-8"),
    "gzip": (b"\x1f\x8b\x08\x00\x00\x00", 1, "byte 0x8b is not UTF-8"),
    "NUL bytes": (b"\x00\x00\x00\n", 1, "not JSON"),
    "torn line": (GOOD + "\n" + GOOD[:40] + "\n", 2, "not JSON"),
    "two objects on a line": (GOOD + GOOD + "\n", 1, "not JSON: Extra data"),
    "a JSON array of all": (f"[{GOOD},\n{GOOD}]\n", 1, "not JSON"),
    "a list": ("[1, 2]\n", 1, "not a JSON object but [1, 2]"),
    "null": ("null\n", 1, "not a JSON object but null"),
    "a number of too many digits": ('{"id": ' + "9" * 5000 + "}\n", 1, "not usable JSON"),
    "nested too deeply": ("[" * 100_000 + "]" * 100_000 + "\n", 1, "not usable JSON"),
    "a field twice": (GOOD[:-1] + ', "output_ids": [1]}\n', 1, "field 'output_ids' is given twice"),
    "no id": (spoilt(id=None) + "\n", 1, "no id; fields found: prompt_ids, output_ids"),
    "an empty id": (spoilt(id=" ") + "\n", 1, "'id' is \" \", not a text or an integer"),
    "an id that is a list": (spoilt(id=["q"]) + "\n", 1, "'id' is [\"q\"]"),
    "an id that is true": (spoilt(id=True) + "\n", 1, "'id' is true"),
    "an id that is a fraction": (spoilt(id=1.5) + "\n", 1, "'id' is 1.5"),
    "the same id twice": (f"{GOOD}\n\n{GOOD}\n", 3, "id 'q0' is given twice, first at a.jsonl:1"),
    "1 and '1'": (spoilt(id=1) + "\n" + spoilt(id="1") + "\n", 2, "id '1' is given twice"),
    "no prompt": (spoilt(prompt_ids=None) + "\n", 1, "no prompt_ids and no prompt; fields found: id, output_ids"),
    "a prompt of messages": (spoilt(prompt_ids=None, prompt=[{"role": "user"}]) + "\n", 1, "not a text"),
    "no output anywhere": (spoilt(output_ids=None, text=None) + "\n", None, "no line has output_ids or text"),
    "ids as text": (spoilt(output_ids="1 2 3") + "\n", 1, "'output_ids' is \"1 2 3\", not a list of token ids"),
    "ids with a fraction": (spoilt(output_ids=[1, 2.0]) + "\n", 1, "'output_ids' holds 2.0 at place 1"),
    "ids with NaN": (spoilt(output_ids=[float("nan")]) + "\n", 1, "'output_ids' holds NaN at place 0"),
    "ids with a truth value": (spoilt(output_ids=[1, True]) + "\n", 1, "'output_ids' holds true at place 1"),
    "ids with null": (spoilt(prompt_ids=[1, None]) + "\n", 1, "'prompt_ids' holds null at place 1"),
    "ids below zero": (spoilt(output_ids=[5, -1]) + "\n", 1, "'output_ids' holds -1 at place 1"),
    "ids in batches": (spoilt(output_ids=[[1, 2]]) + "\n", 1, "'output_ids' holds [1, 2] at place 0"),
    "a text that is a number": (spoilt(text=7) + "\n", 1, "'text' is 7, not a text"),
    "half of a surrogate pair": (GOOD.replace("plain", "\\ud83d") + "\n", 1, "half of a surrogate pair"),
    "an error that is a number": (spoilt(error=500) + "\n", 1, "'error' is 500, not a text"),
    "a sample without its batch": (spoilt(id=None, case_id="eqspec/b4/k4/s0/q0") + "\n", 1, "'batch_size' is null"),
    "a sample with a bad batch": (
        spoilt(id=None, case_id="c", batch_size=4, unit=0, call=True) + "\n", 1, "'call' is true, not a whole number",
    ),
}  # fmt: skip


@pytest.mark.parametrize("side", ["recording", "reference"])
@pytest.mark.parametrize("name", BAD)
def test_file_and_line_are_named(name: str, side: str) -> None:
    content, line, message = BAD[name]
    Path("a.jsonl").write_bytes(content if isinstance(content, bytes) else content.encode())
    good = write("good.jsonl", lines())
    pair = ("a.jsonl", good) if side == "recording" else (good, "a.jsonl")
    result = specaudit("replay", pair[0], "--reference", pair[1])
    assert result.exit_code == 2
    assert result.stdout == ""
    error, way_out = result.stderr.splitlines()
    assert error.startswith("error: a.jsonl: " if line is None else f"error: a.jsonl:{line}: ")
    assert message in error
    assert way_out.startswith("  ")


@pytest.mark.parametrize("name", ["nowhere.jsonl", "folder"])
def test_a_file_that_is_not_there(name: str) -> None:
    Path("folder").mkdir()
    result = specaudit("replay", name, "--reference", write("b.jsonl", lines()))
    assert result.exit_code == 2
    assert "the recording cannot be read" in result.stderr
    assert "Traceback" not in result.stderr


def test_recordings_without_a_common_id() -> None:
    result = replay([{**line, "id": f"other-{line['id']}"} for line in lines()], lines())
    assert result.exit_code == 2
    assert "a.jsonl: no id of it is in b.jsonl: 'other-q0' against 'q0'" in result.stderr


def test_options_that_are_missing_or_cannot_be_written() -> None:
    assert specaudit("replay", write("a.jsonl", lines())).exit_code == 2
    result = replay(lines(), lines(), "--json", "a.jsonl/report.json")
    assert result.exit_code == 2
    assert "cannot write to" in result.stderr


HOSTILE = "q\x1b[2J\u202e[red]\n"


def test_hostile_texts_reach_no_terminal() -> None:
    recording = [{**line, "id": line["id"] + HOSTILE, "model": HOSTILE, "category": HOSTILE} for line in lines()]
    spoilt = [{**line, "output_ids": [5], "text": HOSTILE} for line in recording[:1]]
    spoilt += [{**line, "error": HOSTILE} for line in recording[1:3]]
    results = [replay(spoilt + recording[3:], recording), replay(recording * 2, recording), replay(recording, lines())]
    assert [result.exit_code for result in results] == [1, 2, 2]
    for result in results:
        assert not {"\x1b", "\u202e"} & set(result.stdout + result.stderr)


def test_many_lines_are_no_matter() -> None:
    many = [{"id": number, "prompt_ids": [number], "output_ids": [number + 9, 7, 8, 2]} for number in range(20_000)]
    shifted = [{**line, "output_ids": many[number - 1]["output_ids"]} for number, line in enumerate(many)]
    result = replay(shifted[:-1] + many[-1:], many, "--details", "0")
    assert result.exit_code == 1
    assert "19999 outputs of another prompt" in " ".join(result.stdout.split())
