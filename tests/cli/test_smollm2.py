"""A real model whose pad token is its EOS, on SpecBench prompts: a slice of `make smollm2`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from specaudit.core.run_directory import RunDirectory
from tests.cli.command import specaudit
from tests.smollm2 import smollm2_directory

pytestmark = pytest.mark.slow_model


@pytest.fixture
def common(in_folder: Path) -> tuple[str, ...]:
    path = os.environ.get("SPECAUDIT_SPECBENCH")
    if not path:
        pytest.skip("SPECAUDIT_SPECBENCH does not name SpecBench's question file")
    return (
        "run", "--target", str(smollm2_directory()), "--prompts", f"specbench:{path}", "--limit", "4",
        "--max-new-tokens", "16", "--threads", "1", "--out", "run",
    )  # fmt: skip


@pytest.mark.parametrize("template", [(), ("--chat-template",)], ids=["raw", "chat"])
def test_eqspec_is_identical_although_padding_is_eos(common: tuple[str, ...], template: tuple[str, ...]) -> None:
    result = specaudit(*common, *template, "--draft", "stress:0.4", "--decoder", "eqspec", "--batch-size", "4")
    assert result.exit_code == 0, result.stdout
    cases = RunDirectory(Path("run")).read_cases()
    assert len(cases) == 4
    assert all(case.output_ids == case.reference_ids for case in cases)
    assert {case.sync for case in cases} == {"certified"}


def test_bsp_is_caught(common: tuple[str, ...]) -> None:
    result = specaudit(*common, "--draft", "noisy:0.12", "--decoder", "bsp", "--batch-size", "4")
    assert result.exit_code == 1
    cases = RunDirectory(Path("run")).read_cases()
    assert {case.verdict for case in cases} >= {"diverged"}
    assert {finding.check for case in cases for finding in case.findings} == {"POS"}
