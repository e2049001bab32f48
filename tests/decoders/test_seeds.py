"""Several seeds in one run: what is random is drawn anew, what is not runs once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from specaudit.core.run_directory import RunDirectory
from tests.cli.command import specaudit

if TYPE_CHECKING:
    from pathlib import Path

RUN = ("run", "--limit", "4", "--batch-size", "4", "--max-new-tokens", "24")


@pytest.mark.parametrize("draft", ["noisy:0.08", "stress:0.4"])
def test_each_seed_drafts_differently(in_folder: Path, draft: str) -> None:
    options = ("--draft", draft, "--decoder", "greedy-batch,eqspec", "--draft-tokens", "2,4")
    result = specaudit(*RUN, *options, "--seed", "5,0", "--out", "both")
    assert result.exit_code == 0, result.stdout
    cases = RunDirectory(in_folder / "both").read_cases()
    assert [case.case_id for case in cases if case.prompt_id == "fibonacci"] == [
        "greedy-batch/b4/fibonacci",
        "eqspec/b4/k2/s5/fibonacci", "eqspec/b4/k4/s5/fibonacci",
        "eqspec/b4/k2/s0/fibonacci", "eqspec/b4/k4/s0/fibonacci",
    ]  # fmt: skip
    accepted = {
        seed: [case.accepted_tokens for case in cases if (case.seed, case.draft_tokens) == (seed, 4)] for seed in (5, 0)
    }
    assert accepted[5] != accepted[0]
    alone = specaudit(*RUN, *options, "--seed", "0", "--out", "alone")
    assert alone.exit_code == 0
    by_id = {case.case_id: case for case in cases}
    for case in RunDirectory(in_folder / "alone").read_cases():
        assert by_id[case.case_id] == case
    header = next(line for line in result.stdout.splitlines() if line.startswith("decoder"))
    assert header.split()[:4] == ["decoder", "batch", "K", "seed"]


def test_seeds_of_a_run_can_be_run_again(in_folder: Path) -> None:
    options = ("--draft", "noisy:0.08", "--decoder", "eqspec", "--seed", "0,5", "--limit", "2")
    specaudit("run", *options, "--batch-size", "2", "--max-new-tokens", "12", "--out", "first")
    cases = RunDirectory(in_folder / "first").read_cases()
    result = specaudit("run", "--from", "first", "--case", cases[-1].case_id, "--out", "again")
    assert result.exit_code == 0, result.stderr
    assert RunDirectory(in_folder / "again").read_cases() == cases[2:]
