"""Runs that are killed, torn, stopped or limited: nothing finished is lost or done twice, and the report is the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from specaudit.core.run_directory import RunDirectory
from tests.cli.command import specaudit

if TYPE_CHECKING:
    from pathlib import Path

PLAN = ("run", "--decoder", "eqspec,bsp", "--batch-size", "1,2", "--limit", "12", "--max-new-tokens", "16")
TIMES = ("tokens_per_second",)


def report_of(folder: Path) -> dict[str, Any]:
    """Return a run's report without times."""
    report = json.loads((folder / "report.json").read_text())
    for arm in report["arms"]:
        for name in TIMES:
            arm.pop(name)
    return report


def start(*arguments: str, folder: Path) -> subprocess.Popen:
    """Start the real command line as a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "specaudit", *arguments]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.fixture
def whole(in_folder: Path) -> Path:
    """Return the directory of an uninterrupted run."""
    assert specaudit(*PLAN, "--out", "whole").exit_code == 1
    return in_folder / "whole"


def test_torn_at_any_byte_then_resumed(whole: Path, in_folder: Path) -> None:
    samples, units = ((whole / name).read_bytes() for name in ("samples.jsonl", "units.jsonl"))
    random = Random(3)
    for number in range(12):
        torn = in_folder / f"torn{number}"
        torn.mkdir()
        (torn / "manifest.json").write_bytes((whole / "manifest.json").read_bytes())
        cut = random.randrange(len(samples) + 1)
        (torn / "samples.jsonl").write_bytes(samples[:cut])
        lines = units.splitlines(keepends=True)
        (torn / "units.jsonl").write_bytes(
            b"".join(lines[: random.randrange(len(lines) + 1)])[: -random.randrange(9) or None]
        )
        result = specaudit("run", "--resume", str(torn))
        assert result.exit_code == 1
        assert RunDirectory(torn).read_cases() == RunDirectory(whole).read_cases()
        assert report_of(torn) == report_of(whole)
        assert (torn / "tokens.json").read_bytes() == (whole / "tokens.json").read_bytes()


def test_killed_ten_times_then_resumed(whole: Path, in_folder: Path) -> None:
    random, folder = Random(7), in_folder / "killed"
    kills = 0
    while kills < 10:
        has_manifest = (folder / "manifest.json").exists()
        arguments = ("run", "--resume", "killed") if has_manifest else (*PLAN, "--out", "killed")
        process = start(*arguments, folder=in_folder)
        written = folder / "units.jsonl"
        before = written.stat().st_size if written.exists() else 0
        deadline = time.monotonic() + 120
        # Most of the time is loading: wait for work to begin, then kill within the work.
        while process.poll() is None and time.monotonic() < deadline:
            has_begun = (folder / "manifest.json").exists() and random.random() < 0.05
            if has_begun or (written.exists() and written.stat().st_size > before):
                break
            time.sleep(0.05)
        time.sleep(random.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += 1
        if process.returncode != -signal.SIGKILL:
            break  # it finished first: nothing is left to kill
    assert kills >= 1  # how many fit into the run depends on how fast the machine is
    assert specaudit("run", "--resume", "killed").exit_code == 1
    assert RunDirectory(folder).read_cases() == RunDirectory(whole).read_cases()
    assert report_of(folder) == report_of(whole)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_leave_a_readable_partial_report(number: signal.Signals, in_folder: Path) -> None:
    process = start(
        "run", "--decoder", "greedy-batch", "--batch-size", "1", "--out", "run", "--max-new-tokens", "200", "--ignore-eos",
        folder=in_folder,
    )  # fmt: skip
    written = in_folder / "run" / "units.jsonl"
    deadline = time.monotonic() + 240
    while process.poll() is None and not written.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=240)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert stdout.splitlines()[-1].startswith("specaudit: interrupted (exit 130)")
    report = json.loads((in_folder / "run" / "report.json").read_text())
    cases = RunDirectory(in_folder / "run").read_cases()
    assert report["verdict"] == "interrupted"
    assert 0 < len(cases) < 24
    assert sum(arm["cases"] for arm in report["arms"]) == len(cases)


def test_a_time_limit_stops_at_a_units_end(in_folder: Path) -> None:
    result = specaudit(*PLAN[:1], "--decoder", "eqspec", "--batch-size", "1", "--time-limit", "0.01", "--out", "run")
    assert result.exit_code == 3
    assert len(RunDirectory(in_folder / "run").read_cases()) == 4
    assert "20 of 24 cases not run, the time limit of 0.01 s was reached" in result.stdout
    resumed = specaudit("run", "--resume", "run")
    assert resumed.exit_code == 0
    assert len(RunDirectory(in_folder / "run").read_cases()) == 24


def test_a_finding_outranks_the_time_limit(in_folder: Path) -> None:
    result = specaudit("run", "--decoder", "bsp", "--batch-size", "1", "--time-limit", "0.01", "--out", "run")
    assert result.exit_code == 1


def test_one_case_again(whole: Path, in_folder: Path) -> None:
    chosen = [case for case in RunDirectory(whole).read_cases() if case.case_id.startswith("bsp/b2")][3]
    result = specaudit("run", "--from", "whole", "--case", chosen.case_id, "--out", "again")
    assert result.exit_code == 1
    again = RunDirectory(in_folder / "again").read_cases()
    assert chosen in again
    assert len(again) == 2
    assert {(case.unit, case.call) for case in again} == {(chosen.unit, chosen.call)}


def test_again_with_changes(whole: Path, in_folder: Path) -> None:
    result = specaudit("run", "--from", "whole", "--decoder", "greedy-batch", "--batch-size", "3", "--out", "again")
    assert result.exit_code == 0
    assert {case.batch_size for case in RunDirectory(in_folder / "again").read_cases()} == {3}


REFUSED = {
    "resume-with-changes": (("--resume", "whole", "--batch-size", "4"), "without batch_sizes"),
    "resume-elsewhere": (("--resume", "whole", "--out", "other"), "without --from or --out"),
    "resume-nothing": (("--resume", "nowhere"), "is not a run directory"),
    "from-nothing": (("--from", "nowhere"), "is not a run directory"),
    "case-without-run": (("--case", "x"), "--case needs the run"),
    "unknown-case": (("--from", "whole", "--case", "bsp/b2/k4/s0/fibonaci"), "has no case"),
    "case-recomposed": (("--from", "whole", "--case", "x", "--batch-size", "8"), "would put other prompts"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_run_again(name: str, whole: Path) -> None:
    options, message = REFUSED[name]
    result = specaudit("run", *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_strangers_manifest_imports_no_code(in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (in_folder / "mine.py").write_text("from specaudit.decoders.eqspec import decode\n")
    assert (
        specaudit("run", "--decoder", "mine.py:decode", "--limit", "2", "--batch-size", "2", "--out", "run").exit_code
        == 0
    )
    assert specaudit("run", "--from", "run").exit_code == 0
    monkeypatch.setenv("SPECAUDIT_CACHE", str(in_folder / "another-user"))
    result = specaudit("run", "--from", "run")
    assert result.exit_code == 2
    assert "started elsewhere and would import decoder 'mine.py:decode'" in result.stderr
    assert specaudit("run", "--from", "run", "--allow-code").exit_code == 0


def test_a_changed_model_is_not_resumed(whole: Path) -> None:
    manifest = json.loads((whole / "manifest.json").read_text())
    manifest["effective"]["target"]["digest"] = "0" * 64
    (whole / "manifest.json").write_text(json.dumps(manifest))
    result = specaudit("run", "--resume", "whole")
    assert result.exit_code == 2
    assert "target changed since the run began" in result.stderr
    assert len(RunDirectory(whole).read_cases()) == 48


def test_a_newer_schema_is_refused_by_name(whole: Path) -> None:
    manifest = json.loads((whole / "manifest.json").read_text())
    manifest |= {"schema_version": 99, "specaudit": "9.9.9"}
    (whole / "manifest.json").write_text(json.dumps(manifest))
    result = specaudit("run", "--from", "whole")
    assert result.exit_code == 2
    assert "pip install 'specaudit>=9.9.9'" in result.stderr
