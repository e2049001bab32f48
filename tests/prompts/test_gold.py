"""Gold answers: where they are looked for, and what counts as one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from specaudit.core.errors import InputError
from specaudit.prompts import load_prompts

if TYPE_CHECKING:
    from pathlib import Path


def _gold(folder: Path, record: dict[str, Any], **options: str) -> str | None:
    path = folder / "set.jsonl"
    path.write_text(json.dumps({"text": "a"} | record))
    return load_prompts(str(path), **options).prompts[0].gold


@pytest.mark.parametrize(
    ("record", "gold"),
    [
        ({}, None),
        ({"reference": "r", "answer": "a", "gold": "g"}, "g"),
        ({"reference": "r", "answer": "a", "gold": None}, "a"),
        ({"reference": "r", "answer": ""}, "r"),
        ({"answer": 42}, "42"),
        ({"answer": 0}, "0"),
        ({"answer": 2.5}, "2.5"),
        ({"reference": ["one", ["two", 3]]}, "one\ntwo\n3"),
        ({"reference": []}, None),
        ({"answer": {"by": "nobody"}, "reference": "r"}, "r"),
        ({"answer": True}, None),
        ({"answer": float("nan")}, None),
    ],
)
def test_the_first_field_that_holds_an_answer_counts(tmp_path: Path, record: dict[str, Any], gold: str | None) -> None:
    assert _gold(tmp_path, record) == gold


def test_a_named_field_must_hold_an_answer(tmp_path: Path) -> None:
    assert _gold(tmp_path, {"solution": "s", "gold": "g"}, gold_field="solution") == "s"
    with pytest.raises(InputError, match="field 'solution' is no answer: true") as caught:
        _gold(tmp_path, {"solution": True}, gold_field="solution")
    assert caught.value.where == f"{tmp_path}/set.jsonl:1"
    with pytest.raises(InputError, match="no record has the field 'solution'") as caught:
        _gold(tmp_path, {"solutions": "s"}, gold_field="solution")
    assert (caught.value.where, caught.value.way_out) == ("--gold-field", "did you mean 'solutions'?")


def test_the_prompt_is_not_its_own_answer(tmp_path: Path) -> None:
    assert _gold(tmp_path, {"answer": "a"}, field="answer") is None


def test_a_broken_surrogate_in_an_answer_is_located(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="U\\+D800 at character 2"):
        _gold(tmp_path, {"answer": "a\ud800"})
