"""A decoder that returns text: compared as text, said to be, and never seen from inside."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.command import specaudit

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """
from specaudit.decoders import eqspec

def decode(target, draft, tokenizer, prompts, *, max_new_tokens, draft_tokens, eos_token_ids, pad_token_id):
    outputs = eqspec.decode(target, draft, tokenizer, prompts, max_new_tokens=max_new_tokens, draft_tokens=draft_tokens,
                            eos_token_ids=eos_token_ids, pad_token_id=pad_token_id)
    return [CHANGE(tokenizer.decode(output, skip_special_tokens=True)) for output in outputs]
"""


def audit(folder: Path, change: str) -> tuple[int, str, list[dict], dict]:
    """Audit a decoder that changes its texts; return exit code, standard output, cases and report."""
    (folder / "theirs.py").write_text(SOURCE.replace("CHANGE", change))
    result = specaudit(
        "run", "--decoder", "theirs.py:decode", "--batch-size", "4", "--limit", "8", "--max-new-tokens", "24",
        "--out", "run",
    )  # fmt: skip
    cases = [json.loads(line) for line in (folder / "run" / "samples.jsonl").read_text().splitlines()]
    return result.exit_code, result.stdout, cases, json.loads((folder / "run" / "report.json").read_text())


def test_right(in_folder: Path) -> None:
    exit_code, shown, cases, report = audit(in_folder, "")
    assert exit_code == 0
    assert shown.splitlines()[-1] == (
        "specaudit: equal-outputs (exit 0): inner state not observed in 8 of 8 cases, 8 compared as text"
    )
    assert {case["verdict"] for case in cases} == {"identical"}
    assert {case["compared"] for case in cases} == {"text"}
    assert {case["sync"] for case in cases} == {"unobserved"}
    assert {case["sync_reason"] for case in cases} == {
        "the decoder returned text; return token ids to have it observed"
    }
    assert {case["output_ids"] for case in cases} == {None}
    assert all(case["output_text"] == case["reference_text"] for case in cases)
    assert not any("<|" in case["reference_text"] for case in cases)
    (arm,) = report["arms"]
    assert arm["compared_as_text"] == 8
    assert arm["tokens_per_second"] is None
    assert "8 cases: the decoder returned text" in shown


@pytest.mark.parametrize("change", ["(lambda text: text + ' ')", "(lambda text: text[:-1])", "(lambda text: '')"])
def test_white_space_and_length_count(in_folder: Path, change: str) -> None:
    exit_code, shown, cases, _ = audit(in_folder, change)
    assert exit_code == 1
    assert {case["verdict"] for case in cases if case["reference_text"]} == {"diverged"}
    assert "compared as text: parts from the reference at character" in " ".join(shown.split())


def test_a_mixture_is_no_output(in_folder: Path) -> None:
    exit_code, _, cases, _ = audit(in_folder, "(lambda text: text if 'e' in text else [1])")
    assert exit_code == 3
    assert {case["error"] for case in cases if case["error"]} <= {
        f"output {place} is a str, not a list of token ids; return text for all prompts or for none"
        for place in range(4)
    }
    assert "unmeasured" in {case["verdict"] for case in cases}
