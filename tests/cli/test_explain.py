"""`specaudit explain`: the story of a failing case from what its run kept, without a model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from specaudit.core.run_directory import RunDirectory
from tests.cli.command import Result, specaudit

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

ROLLBACK = (Path(__file__).parent / "decoders" / "rollback.py").read_text(encoding="utf-8")
HOLES = (Path(__file__).parents[2] / "docs" / "examples" / "my_decoder.py").read_text(encoding="utf-8")
OPTIONS = ("--limit", "8", "--max-new-tokens", "16", "--details", "1", "--quiet", "--out", "run")

FAULTS = {
    "first rejected proposal returned": (
        ROLLBACK,
        "new = predictions[:, : kept + 1]",
        "new = block[:, 1 : kept + 2] if kept < draft_tokens else predictions[:, : kept + 1]",
    ),
    "rejected token attended": (
        HOLES,
        "target_rows.keep(is_kept)",
        "target_rows.keep((offsets <= accepted + 1) & is_running)",
    ),
}
"""Decoders that are right but for one line: source, line, what stands there instead."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Run each faulty decoder, and two built-in ones together; return the folder that each ran in."""
    folders = {}
    before = Path.cwd()
    for number, what in enumerate(["bsp", *FAULTS]):
        folder = tmp_path_factory.mktemp("explain") / str(number)
        folder.mkdir()
        os.chdir(folder)
        try:
            decoder = "greedy-batch,bsp"
            if what in FAULTS:
                source, line, instead = FAULTS[what]
                assert source.count(line) == 1
                Path("theirs.py").write_text(source.replace(line, instead), encoding="utf-8")
                decoder = "theirs.py:decode"
            result = specaudit("run", "--decoder", decoder, "--batch-size", "4", *OPTIONS)
        finally:
            os.chdir(before)
        assert result.exit_code == 1, result.stdout + result.stderr
        (folder / "stdout").write_text(result.stdout, encoding="utf-8")
        folders[what] = folder
    return folders


def explain(folder: Path, *arguments: str) -> Result:
    before = Path.cwd()
    os.chdir(folder)
    try:
        return specaudit("explain", "run", *arguments)
    finally:
        os.chdir(before)


def cases(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "run" / "samples.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("what", ["bsp", *FAULTS])
def test_the_story_of_the_worst_case(what: str, runs: dict[str, Path], snapshot: SnapshotAssertion) -> None:
    """The report ends each failure with the command; what that prints has at most 45 lines of 80 columns."""
    stdout = (runs[what] / "stdout").read_text(encoding="utf-8")
    (command,) = [line.strip() for line in stdout.splitlines() if line.startswith("  specaudit explain run ")]
    result = explain(runs[what], command.split()[3])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 80
    assert str(result) == snapshot


def test_every_violated_case_has_its_evidence(runs: dict[str, Path]) -> None:
    for folder in runs.values():
        directory = RunDirectory(folder / "run")
        violated = [case for case in directory.read_cases() if case.sync == "violated"]
        assert violated
        for case in violated:
            evidence = directory.read_evidence(case.case_id)
            assert evidence is not None
            (origin, *_) = case.causes
            assert (evidence.step, evidence.row, evidence.query) == (origin.step, origin.row, origin.query)
            assert evidence.blocks[-1].step == evidence.step
            assert explain(folder, case.case_id).exit_code == 0
        assert len(list((folder / "run" / "traces").iterdir())) == len(violated)


def test_the_last_command_reruns_the_case(runs: dict[str, Path], tmp_path: Path) -> None:
    folder = runs["bsp"]
    failing = next(case for case in cases(folder) if case["sync"] == "violated")
    command = explain(folder, failing["case_id"]).stdout.splitlines()[-1].split()
    assert command == ["specaudit", "run", "--from", "run", "--case", failing["case_id"]]
    before = Path.cwd()
    os.chdir(folder)
    try:
        result = specaudit(*command[1:], "--out", str(tmp_path / "again"), "--quiet")
    finally:
        os.chdir(before)
    assert result.exit_code == 1
    once, again = RunDirectory(folder / "run"), RunDirectory(tmp_path / "again")
    assert once.read_evidence(failing["case_id"]) == again.read_evidence(failing["case_id"])


def test_a_part_of_a_name_is_enough_where_it_fits_one_case(runs: dict[str, Path]) -> None:
    folder = runs["bsp"]
    whole = next(case["case_id"] for case in cases(folder) if case["sync"] == "violated")
    part = whole.removeprefix("bsp/")
    assert explain(folder, part).stdout == explain(folder, whole).stdout
    result = explain(folder, "bsp")
    assert result.exit_code == 2
    assert "'bsp' is a part of 8 cases" in result.stderr
    assert f"one of: {next(case['case_id'] for case in cases(folder) if case['decoder'] == 'bsp')}" in result.stderr


def test_an_unknown_case_is_refused_with_the_nearest(runs: dict[str, Path]) -> None:
    folder = runs["bsp"]
    name = cases(folder)[0]["case_id"]
    result = explain(folder, name[:-1] + "?")
    assert result.exit_code == 2
    assert f"did you mean '{name}'?" in result.stderr


def test_a_case_that_did_not_fail(runs: dict[str, Path]) -> None:
    folder = runs["bsp"]
    name = next(case["case_id"] for case in cases(folder) if case["verdict"] == "identical" and not case["findings"])
    result = explain(folder, name)
    assert result.exit_code == 0
    assert "did not fail: the output equals the reference" in " ".join(result.stdout.split())


def test_the_evidence_as_json(runs: dict[str, Path]) -> None:
    folder = runs["bsp"]
    failing = next(case for case in cases(folder) if case["sync"] == "violated")
    result = explain(folder, failing["case_id"], "--json", "-")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["case"] == failing
    assert document["evidence"]["case_id"] == failing["case_id"]
    assert document["rerun"].startswith("specaudit run --from run --case ")


def test_no_run_directory(in_folder: Path) -> None:
    result = specaudit("explain", "nowhere", "any")
    assert result.exit_code == 2
    assert "'nowhere' is not a run directory" in result.stderr


def test_evidence_that_is_lost_or_damaged(runs: dict[str, Path]) -> None:
    folder = runs["rejected token attended"]
    directory = RunDirectory(folder / "run")
    name = next(case["case_id"] for case in cases(folder) if case["sync"] == "violated")
    path = directory._evidence_path(name)
    text = path.read_text(encoding="utf-8")
    try:
        for damaged in ("{}", "[]", "not json", text.replace('"holding": "token"', '"holding": "odd"'), text[:-20]):
            path.write_text(damaged, encoding="utf-8")
            result = explain(folder, name)
            assert result.exit_code == 2, damaged
            assert "not the evidence of a case" in result.stderr
        path.write_text(text.replace(name, "another"), encoding="utf-8")
        assert "the evidence of another case, 'another'" in explain(folder, name).stderr
        path.unlink()
        result = explain(folder, name)
        assert result.exit_code == 0
        assert "nothing was kept" in result.stdout
    finally:
        path.write_text(text, encoding="utf-8")


def test_no_model_library_is_imported(runs: dict[str, Path]) -> None:
    folder = runs["bsp"]
    name = next(case["case_id"] for case in cases(folder) if case["sync"] == "violated")
    program = (
        "import sys\n"
        "for name in ('torch', 'transformers', 'numpy'): sys.modules[name] = None\n"
        f"sys.argv = ['specaudit', 'explain', 'run', {name!r}]\n"
        "from specaudit.cli.main import main\nmain()\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "cause: " in result.stdout
