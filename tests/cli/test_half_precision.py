"""Targets in half precision, end to end: rounding may change an output, never what was seen inside."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from specaudit.core.run_directory import RunDirectory
from specaudit.core.vocabulary import Sync, Verdict
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
def test_correct_decoders_are_clean(in_folder: Path, dtype: str) -> None:
    cases = audited(in_folder, dtype, "greedy-batch,eqspec")
    assert [case.sync for case in cases] == [Sync.CLEAN] * 16, {case.sync_reason for case in cases}
    assert Verdict.UNMEASURED not in {case.verdict for case in cases}
    assert all(case.proposed_tokens for case in cases if case.decoder == "eqspec")


def test_a_decoder_with_faults_is_caught(in_folder: Path) -> None:
    assert Sync.VIOLATED in {case.sync for case in audited(in_folder, "bfloat16", "bsp")}
