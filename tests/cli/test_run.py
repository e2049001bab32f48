"""`specaudit run` on the bundled pair, end to end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from specaudit.core.run_directory import RunDirectory
from tests.cli.command import specaudit

if TYPE_CHECKING:
    from pathlib import Path


def test_bare_run_passes(in_folder: Path) -> None:
    result = specaudit("run")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == ("specaudit: lossless (exit 0): 96 of 96 cases identical, all certified")
    (folder,) = (in_folder / "runs").iterdir()
    assert {path.name for path in folder.iterdir()} == {
        "manifest.json", "report.json", "samples.jsonl", "tokens.json", "units.jsonl",
    }  # fmt: skip
    cases = RunDirectory(folder).read_cases()
    assert len(cases) == len({case.case_id for case in cases}) == 96
    assert all(case.accepted_tokens for case in cases if case.decoder == "eqspec")


def test_bsp_fails_with_a_position_at_every_batch_size(in_folder: Path) -> None:
    result = specaudit("run", "--decoder", "bsp", "--batch-size", "1,4,8", "--limit", "16", "--max-new-tokens", "32")
    assert result.exit_code == 1
    report = json.loads(next((in_folder / "runs").glob("*/report.json")).read_text())
    assert [arm["batch_size"] for arm in report["arms"]] == [1, 4, 8]
    for arm in report["arms"]:
        finding = arm["first_violation"]
        assert finding["check"] == "POS"
        assert finding["actual"] > finding["expected"]
        assert {"step", "row", "query"} <= finding.keys()
    assert "POS at step" in result.stdout


def test_json_on_standard_output_is_json_alone(in_folder: Path) -> None:
    result = specaudit("run", "--limit", "4", "--batch-size", "4", "--decoder", "eqspec", "--json", "-")
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["verdict"] == "lossless"
    assert report["exit_code"] == 0
    assert "specaudit: lossless" in result.stderr


def test_references_are_kept_between_runs(in_folder: Path) -> None:
    options = ("run", "--limit", "4", "--batch-size", "4", "--decoder", "greedy-batch", "--max-new-tokens", "7")
    specaudit(*options, "--out", "first")
    result = specaudit(*options, "--out", "second")
    assert "4 cached" in result.stderr
    first, second = (RunDirectory(in_folder / name).read_cases() for name in ("first", "second"))
    assert first == second


def test_every_draft_gives_the_same_outputs(in_folder: Path) -> None:
    outputs = []
    for number, draft in enumerate(
        ("bundled:llama", "layers:2", "noisy:0.1", "stress:0.3", "stress:1", "bundled:llama")
    ):
        result = specaudit(
            "run", "--draft", draft, "--decoder", "eqspec", "--batch-size", "8", "--limit", "8", "--out", f"run{number}",
            "--max-new-tokens", "24",
        )  # fmt: skip
        assert result.exit_code == (3 if draft == "stress:1" else 0), result.stdout
        assert ("insufficient-coverage" in result.stdout) == (draft == "stress:1")
        cases = RunDirectory(in_folder / f"run{number}").read_cases()
        outputs.append([case.output_ids for case in cases])
        if draft == "stress:1":
            assert sum(case.accepted_tokens for case in cases) == 0
    assert all(output == outputs[0] for output in outputs)


def test_ignoring_eos_fills_the_budget(in_folder: Path) -> None:
    result = specaudit(
        "run", "--limit", "8", "--ignore-eos", "--decoder", "eqspec", "--out", "run", "--batch-size", "4"
    )
    assert result.exit_code == 0
    assert {len(case.output_ids) for case in RunDirectory(in_folder / "run").read_cases()} == {48}


def test_a_fast_trace_is_clean_at_best(in_folder: Path) -> None:
    result = specaudit(
        "run", "--trace", "fast", "--limit", "8", "--max-new-tokens", "24", "--batch-size", "4", "--out", "run"
    )
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].endswith("16 of 16 cases identical, all contexts right")
    cases = RunDirectory(in_folder / "run").read_cases()
    assert {(case.sync.value, case.sync_reason) for case in cases} == {
        ("clean", "2 of 4 layers were looked at (--trace fast)")
    }
    refused = specaudit("run", "--trace", "deep")
    assert (refused.exit_code, refused.stderr.splitlines()[0]) == (2, "error: --trace: no trace mode 'deep'")
