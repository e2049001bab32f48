"""CSV and TSV files: columns, quotes, and lines counted right."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specaudit.core.errors import InputError
from specaudit.prompts import load_prompts

if TYPE_CHECKING:
    from pathlib import Path


def _write(folder: Path, content: str, name: str = "set.csv") -> str:
    path = folder / name
    path.write_bytes(content.encode())
    return str(path)


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    path = _write(tmp_path, "id,answer, prompt ,category\na,4,2 + 2 =,math\nb,,Hello,\n")
    first, second = load_prompts(path).prompts
    assert (first.prompt_id, first.text, first.category, first.gold) == ("a", "2 + 2 =", "math", "4")
    assert (second.prompt_id, second.text, second.category, second.gold) == ("b", "Hello", None, None)


def test_a_named_column_is_taken(tmp_path: Path) -> None:
    path = _write(tmp_path, "prompt,question,solution\nno,yes,gold\n")
    (prompt,) = load_prompts(path, field="question", gold_field="solution").prompts
    assert (prompt.text, prompt.gold) == ("yes", "gold")


def test_tabs_delimit_a_tsv(tmp_path: Path) -> None:
    (prompt,) = load_prompts(_write(tmp_path, "text\tid\na, b\tx\n", "set.TSV")).prompts
    assert (prompt.text, prompt.prompt_id) == ("a, b", "x")


def test_a_prompt_may_span_lines(tmp_path: Path) -> None:
    path = _write(tmp_path, '\ufeffprompt\r\n"one\r\ntwo"\r\n\r\n"say ""three"""\r\nfour\r\n')
    prompts = load_prompts(path).prompts
    assert [(prompt.prompt_id, prompt.text) for prompt in prompts] == [
        ("L2", "one\r\ntwo"),
        ("L5", 'say "three"'),
        ("L6", "four"),
    ]


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ("question\nHello\n", 2, "no field 'prompt' or 'text'; fields found: question"),
        ("Hello, you\nAnd, you\n", 2, "no field 'prompt' or 'text'; fields found: Hello, you"),
        ("prompt\n", 1, "no row below the header"),
        ("prompt,id,prompt\na,b,c\n", 1, "the column 'prompt' twice"),
        ('prompt,id\n"a\nb",1\nc\n', 4, "number of cells: 1 and 2"),
        ('prompt,id\n"a\n\nb",1\nc,2,3\n', 5, "number of cells: 3 and 2"),
        ('prompt,id\n"a\nb",1\n"c"d,2\n', 4, "expected after"),
        ('prompt,id\na,1\n"b,2\nc,3\n', 3, "unexpected end of data"),
        ("prompt,id\na,1\n,2\n", 3, "'prompt' is empty"),
        ("prompt,id\na,1\nb,\n", 3, "'id' is \"\""),
        ("prompt,id\na,1\nb,1\n", 3, "'1' is already taken by"),
        ("prompt\na\nb\x00\rc\n", 3, "not a row"),
        ("prompt\n" + "a" * 200_000, 2, "field larger than field limit"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, content: str, line: int, problem: str) -> None:
    path = _write(tmp_path, content)
    with pytest.raises(InputError) as caught:
        load_prompts(path)
    assert problem in caught.value.message
    assert caught.value.where == f"{path}:{line}"
    assert caught.value.way_out


def test_a_misspelt_column_names_the_nearest(tmp_path: Path) -> None:
    path = _write(tmp_path, "question,answer\nq,a\n")
    with pytest.raises(InputError) as caught:
        load_prompts(path, field="qestion")
    assert caught.value.way_out == "did you mean 'question'?"
    with pytest.raises(InputError) as caught:
        load_prompts(path, field="question", gold_field="anser")
    assert (caught.value.where, caught.value.way_out) == ("--gold-field", "did you mean 'answer'?")


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1)


@given(st.lists(TEXTS.filter(str.strip), min_size=1, max_size=8))
def test_what_the_csv_module_writes_is_read_back(tmp_path: Path, texts: list[str]) -> None:
    file = io.StringIO(newline="")
    writer = csv.writer(file, quoting=csv.QUOTE_ALL)
    writer.writerows([["text"], *([text] for text in texts)])
    prompts = load_prompts(_write(tmp_path, file.getvalue())).prompts
    assert [prompt.text for prompt in prompts] == texts
    lines = [1 + sum(2 + before.count("\n") - 1 for before in ["text", *texts[:place]]) for place in range(len(texts))]
    assert [prompt.prompt_id for prompt in prompts] == [f"L{line}" for line in lines]
