from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from specaudit.core.errors import InputError, UsageError
from specaudit.core.records import UnitTiming
from specaudit.core.run_directory import SCHEMA_VERSION, RunDirectory, default_path
from specaudit.core.vocabulary import Sync
from tests.core.cases import made_case

if TYPE_CHECKING:
    from pathlib import Path

TIMING = UnitTiming(decoder="eqspec", batch_size=4, draft_tokens=4, seed=0, unit=0, seconds=1.5, generated_tokens=4)
CASES = [
    made_case(prompt_id="a"),
    made_case(prompt_id="b", output=(5,), sync=Sync.VIOLATED, output_text="a lone surrogate \ud800 and \x1b[31m"),
    made_case(prompt_id="c", output=None, sync=Sync.UNOBSERVED),
]


def test_cases_come_back_as_they_were(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "run")
    directory.append_unit(CASES[:1], TIMING)
    directory.append_unit([CASES[2]], TIMING)
    assert directory.read_cases() == (CASES[0], CASES[2])


def test_a_text_that_utf8_cannot_hold_is_written_all_the_same(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "run")
    directory.append_unit(CASES, TIMING)
    (_, read, _) = directory.read_cases()
    assert read.output_ids == CASES[1].output_ids
    assert read.output_text == "a lone surrogate ? and \x1b[31m"


def test_a_torn_last_line_is_dropped_and_a_broken_one_named(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "run")
    directory.append_unit(CASES[:1], TIMING)
    path = directory.path / "samples.jsonl"
    whole = path.read_text()
    path.write_text(whole + whole[: len(whole) // 2])
    assert directory.read_cases() == (CASES[0],)
    path.write_text(whole + '{"case_id": 1}\n')
    with pytest.raises(InputError) as raised:
        directory.read_cases()
    assert raised.value.where == f"{path}:2"


def test_folders_that_are_not_run_directories(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a run directory"):
        RunDirectory(tmp_path / "nothing").read_cases()
    (tmp_path / "file").write_text("kept")
    with pytest.raises(UsageError, match="not empty"):
        RunDirectory.create(tmp_path)
    with pytest.raises(UsageError, match="cannot write"):
        RunDirectory.create(tmp_path / "file" / "below")
    assert (tmp_path / "file").read_text() == "kept"


def test_documents_carry_the_schema_version(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "run")
    directory.write_manifest({"plan": {}})
    directory.write_token_texts({3: "three"})
    assert json.loads((directory.path / "manifest.json").read_text()) == {"schema_version": SCHEMA_VERSION, "plan": {}}
    assert json.loads((directory.path / "tokens.json").read_text()) == {"3": "three"}
    assert not list(directory.path.glob("*.part"))


def test_an_unused_directory_goes_and_a_used_one_stays(tmp_path: Path) -> None:
    unused = RunDirectory.create(tmp_path / "unused")
    unused.discard_if_unused()
    assert not unused.path.exists()
    used = RunDirectory.create(tmp_path / "used")
    used.append_unit(CASES[:1], TIMING)
    used.discard_if_unused()
    assert used.read_cases() == (CASES[0],)


def test_default_paths_are_new_and_plain(tmp_path: Path) -> None:
    started = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    first = default_path(tmp_path, name="../some where/model", started=started)
    assert first.parent == tmp_path
    assert first.name == "20260102-030405-some-where-model"
    first.mkdir()
    assert default_path(tmp_path, name="../some where/model", started=started).name.endswith("-2")
