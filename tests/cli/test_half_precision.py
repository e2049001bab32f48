"""Targets in half precision, end to end: rounding may change an output, never what was seen inside."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from specaudit.core.run_directory import RunDirectory
from specaudit.core.vocabulary import Cause, Sync, Verdict
from tests.cli.command import specaudit

if TYPE_CHECKING:
    from pathlib import Path

    from specaudit.core.records import CaseResult


def audited(folder: Path, dtype: str, decoders: str) -> tuple[CaseResult, ...]:
    result = specaudit(
        "run", "--dtype", dtype, "--decoder", decoders, "--batch-size", "1,4", "--limit", "4",
        "--max-new-tokens", "16", "--out", "run",
    )  # fmt: skip
    assert result.exit_code in {0, 1}, result.stderr  # the second where two logits are nearly equal
    models = json.loads((folder / "run" / "manifest.json").read_text())["effective"]
    assert (models["target"]["dtype"], models["draft"]["dtype"]) == (dtype, dtype)
    return RunDirectory(folder / "run").read_cases()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_correct_decoders_are_certified(in_folder: Path, dtype: str) -> None:
    cases = audited(in_folder, dtype, "greedy-batch,eqspec")
    assert [case.sync for case in cases] == [Sync.CERTIFIED] * 16, {case.sync_reason for case in cases}
    assert Verdict.UNMEASURED not in {case.verdict for case in cases}
    assert all(case.proposed_tokens for case in cases if case.decoder == "eqspec")


def test_rounding_is_a_tie_and_faults_are_not(in_folder: Path) -> None:
    """Where a correct decoder differs, it is certified and within the floor; the same with a fault is excused nowhere."""
    result = specaudit(
        "run", "--dtype", "bfloat16", "--decoder", "eqspec,bsp", "--batch-size", "4", "--out", "run",
        "--max-new-tokens", "32",
    )  # fmt: skip
    assert result.exit_code == 1
    cases = RunDirectory(in_folder / "run").read_cases()
    eqspec, bsp = ([case for case in cases if case.decoder == name] for name in ("eqspec", "bsp"))
    ties = [case for case in eqspec if case.output_ids != case.reference_ids]
    assert ties, "the test needs a case that rounding changes"
    floor = next(json.loads(line)["floor"] for line in (in_folder / "run" / "controls.jsonl").read_text().splitlines())
    for case in ties:
        assert (case.verdict, case.sync) == (Verdict.TIE, Sync.CERTIFIED)
        assert case.causes[0].cause is Cause.ROUNDING_TIE
        assert 0 <= case.largest_regret <= 4 * max(floor["maximum"], floor["resolution"])
    assert Verdict.TIE not in {case.verdict for case in bsp}
    assert "noise floor at batch 4, K 4: " in " ".join(result.stdout.split())


def test_a_decoder_with_faults_is_caught(in_folder: Path) -> None:
    assert Sync.VIOLATED in {case.sync for case in audited(in_folder, "bfloat16", "bsp")}
