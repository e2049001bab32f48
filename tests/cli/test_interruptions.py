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

from specaudit import case_judging, runner
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
    time.sleep(0.03)
    process.send_signal(number)  # an impatient second one costs nothing
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
    assert "20 of 24 cases not run, time limit of 0.01 s reached" in result.stdout
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


SPOILT_MANIFESTS = {
    "a list": ([], "not a manifest: TypeError"),
    "a text": ("manifest", "not a manifest: TypeError"),
    "a plan that is a list": ({"plan": []}, "'plan' is []"),
    "an effective that is a list": ({"effective": []}, "not a manifest: TypeError"),
    "a version that is text": ({"schema_version": "1"}, "'schema_version' is \"1\""),
    "an id that is a number": ({"run_id": 7}, "'run_id' is 7"),
    "no libraries": ({"libraries": None}, "'libraries' is null"),
}
SPOILT_PLANS = {
    "target": ["bundled:llama"],
    "decoders": "eqspec",
    "batch_sizes": ["1"],
    "draft_tokens": [True],
    "max_new_tokens": "16",
    "prompts": 3,
    "chat_template": 1,
    "seeds": [],
    "categories": {"a": 1},
    "case_timeout": "soon",
    "threads": 0,
}


@pytest.mark.parametrize("options", [("--resume", "whole"), ("--from", "whole")], ids=["resume", "from"])
def test_a_manifest_with_something_else_in_a_place_is_named(whole: Path, options: tuple[str, str]) -> None:
    path = whole / "manifest.json"
    manifest = json.loads(path.read_text())
    spoilt = [
        (changes if not isinstance(changes, dict) else manifest | changes, message)
        for changes, message in SPOILT_MANIFESTS.values()
    ]
    spoilt += [
        (manifest | {"plan": manifest["plan"] | {name: value}}, f"'{name}' of the plan cannot be {json.dumps(value)}")
        for name, value in SPOILT_PLANS.items()
    ]
    for document, message in spoilt:
        path.write_text(json.dumps(document))
        result = specaudit("run", *options)
        assert result.exit_code == 2, message
        assert message in result.stderr
        assert "fault in specaudit" not in result.stderr


EDITED_SAMPLES = {
    "verdict": (
        {"verdict": "identical", "first_divergence": None, "partial_match": 1.0},
        "it is identical, its output",
    ),
    "output_ids": ({"output_ids": [5, 5]}, "its first_divergence or partial_match is that of another output"),
    "prompt_ids": ({"prompt_ids": [5, 5]}, "its prompt_digest is that of another prompt"),
    "case_id": ({"case_id": "bsp/b1/k4/s0/mine"}, "its identifier is that of another case"),
    "findings": ({"sync": "clean"}, "it is clean with"),
    "error": ({"error": "RuntimeError: boom"}, "its output and error say unmeasured"),
}


@pytest.mark.parametrize("name", EDITED_SAMPLES)
def test_an_edited_sample_is_not_resumed(name: str, whole: Path) -> None:
    changes, message = EDITED_SAMPLES[name]
    path = whole / "samples.jsonl"
    cases = [json.loads(line) for line in path.read_text().splitlines()]
    place = next(n for n, case in enumerate(cases) if case["verdict"] == "diverged" and case["sync"] == "violated")
    cases[place] |= changes
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    result = specaudit("run", "--resume", "whole")
    assert result.exit_code == 2
    assert message in result.stderr
    assert "start again: specaudit run --from whole" in result.stderr
    assert specaudit("run", "--from", "whole", "--limit", "1", "--out", "again").exit_code in {0, 1}


def test_a_crash_says_how_to_go_on(in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_run = case_judging.judge
    calls: list[int] = []

    def crashing(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) > 6:
            raise ZeroDivisionError("a fault")
        return of_run(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(case_judging, "judge", crashing)
        result = specaudit(*PLAN, "--out", "a run")
    assert result.exit_code == 2
    assert "error: ZeroDivisionError: a fault" in result.stderr
    assert "specaudit run --resume 'a run'" in result.stderr
    assert specaudit("run", "--resume", "a run").exit_code == 1
    assert len(RunDirectory(in_folder / "a run").read_cases()) == 48


def test_a_crash_before_anything_was_written_leaves_nothing(in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "load_prompts", lambda *_, **__: 1 / 0)
    result = specaudit(*PLAN, "--out", "run")
    assert result.exit_code == 2
    assert "--resume" not in result.stderr
    assert not (in_folder / "run").exists()
