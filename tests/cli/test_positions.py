"""Prompts longer than the target's positions: refused where there is a table of them, a notice where they are computed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.cli.command import specaudit
from tests.models.tiny_models import save_model, tiny_model, tiny_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = ("--decoder", "greedy-batch", "--batch-size", "1", "--max-new-tokens", "8", "--prompts", "prompts.txt")


def run(folder: Path, architecture: str, **limit: int):
    save_model(folder / "model", tiny_model(architecture, **limit), tiny_tokenizer())
    (folder / "prompts.txt").write_text("short\n" + "long" * 8 + "\n" + "longer" * 8 + "\n")
    return specaudit("run", "--target", "model", *OPTIONS, "--out", "run", "-q")


def test_a_learned_table_of_positions_cannot_be_exceeded(in_folder: Path) -> None:
    result = run(in_folder, "gpt2", n_positions=32)
    assert result.exit_code == 2
    assert "prompt 'L2' needs 44 positions (32 prompt + 8 new + 4 draft tokens), the target has 32" in result.stderr


def test_rotary_positions_are_computed_beyond_and_the_report_says_so(in_folder: Path) -> None:
    result = run(in_folder, "llama", max_position_embeddings=32)
    assert result.exit_code == 0
    (notice,) = json.loads((in_folder / "run" / "report.json").read_text())["notices"]
    assert notice == (
        "prompt 'L2' and 1 more need up to 60 positions, the target was made for 32: "
        "the comparison holds, the text may be poor"
    )
    assert notice in " ".join(result.stdout.split())
    assert result.stderr == ""


def test_prompts_within_the_positions_give_no_notice(in_folder: Path) -> None:
    assert run(in_folder, "llama").exit_code == 0
    assert json.loads((in_folder / "run" / "report.json").read_text())["notices"] == []
