"""Commands of the documents: each is parsed by the real command line, and what is cheap is run."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from specaudit.batch.padding import left_pad
from specaudit.core.records import CaseResult, UnitTiming
from specaudit.decoders.registry import BUILT_IN
from specaudit.faults.random_models import random_draft, random_model
from tests.cli.command import specaudit
from tests.docs.markdown import DOCUMENTS, ROOT, blocks, name

if TYPE_CHECKING:
    from pathlib import Path

    from specaudit.core.records import AuditPlan
    from tests.docs.markdown import Block

README = ROOT / "README.md"
BLOCKS = [block for document in DOCUMENTS for block in blocks(document)]
COMMANDS = list(dict.fromkeys(tuple(command) for block in BLOCKS for command in block.commands))
AUDITS = [command for command in COMMANDS if command[:1] == ("run",) and "--help" not in command]
NEW_AUDITS = [command for command in AUDITS if not {"--from", "--resume"} & set(command)]
STORED = [
    *(command for command in AUDITS if command not in NEW_AUDITS),
    *(c for c in COMMANDS if c[:1] == ("explain",)),
]
"""Commands on a run directory of the reader's."""
OTHERS = [
    command
    for command in COMMANDS
    if command not in (*AUDITS, *STORED) and not any(word.startswith("path/to/") for word in command)
]
PLACEHOLDERS = {"my_package.decoding:decode"}
"""Decoders in the documents that stand for the reader's own."""


def test_there_are_commands() -> None:
    assert len(AUDITS) > 5
    assert ("decoders",) in OTHERS


@pytest.mark.parametrize("command", NEW_AUDITS, ids=" ".join)
def test_an_audit_is_parsed_to_a_plan(command: tuple[str, ...], in_folder: Path) -> None:
    plans: list[AuditPlan] = []

    def note(plan: AuditPlan, *arguments: Any, **options: Any) -> int:
        plans.append(plan)
        return 0

    with patch("specaudit.cli.session.run_session", note):
        result = specaudit(*command)
    assert result.exit_code == 0, result.stderr
    (plan,) = plans
    for decoder in plan.decoders:
        place = ROOT / decoder.rpartition(":")[0]
        assert decoder in BUILT_IN or decoder in PLACEHOLDERS or place.is_file(), f"no decoder '{decoder}'"


@pytest.mark.parametrize("command", STORED, ids=" ".join)
def test_what_needs_a_run_names_options_that_exist(command: tuple[str, ...], in_folder: Path) -> None:
    result = specaudit(*command)
    assert result.exit_code == 2
    assert "is not a run directory" in result.stderr  # everything else is in order


@pytest.mark.parametrize("command", OTHERS, ids=" ".join)
def test_what_needs_no_model_runs(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = specaudit(*command)
    assert result.exit_code == 0
    assert result.stdout


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{name(block.document)}:{block.line}")
def test_python_in_the_documents_is_python(block: Block) -> None:
    if block.language == "python":
        ast.parse(block.text)
    else:
        assert block.language in {"sh", "text", ""}


WATCHING = [block for block in BLOCKS if block.language == "python" and "specaudit.watch(" in block.text]


def test_there_are_scripts_that_watch() -> None:
    assert [name(block.document) for block in WATCHING] == ["README.md", "docs/writing-a-decoder.md"]


@pytest.mark.parametrize("block", WATCHING, ids=lambda block: name(block.document))
def test_a_script_that_watches_runs(block: Block, capsys: pytest.CaptureFixture[str]) -> None:
    model, prompts = random_model("llama"), [[5, 9, 11, 14, 3, 8], [7, 30, 2], [12, 9, 33, 50]]

    def my_decode(model: Any, draft: Any, prompts: list[list[int]]) -> Any:
        options: Any = {"max_new_tokens": 8, "draft_tokens": 3, "eos_token_ids": set(), "pad_token_id": 0}
        return load_decoder(ROOT / "docs" / "examples" / "my_decoder.py")(model, draft, None, prompts, **options)

    batch = left_pad(prompts, pad_token_id=0, device=model.device)
    script = {
        "model": model,
        "draft": random_draft("llama", 0.05),
        "my_decode": my_decode,
        "prompts": prompts,
        "input_ids": batch.input_ids,
        "attention_mask": batch.attention_mask,
        "eos": model.config.eos_token_id,
    }
    exec(block.text, script)
    assert script["report"].is_certified  # type: ignore[attr-defined]
    assert capsys.readouterr().out.startswith("specaudit: certified: 3 of 3 outputs")


def load_decoder(path: Path) -> Any:
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.decode


# The decoder that the documents show, audited by the real command line in a process of its own.


@pytest.fixture(scope="module")
def example_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Audit `docs/examples/my_decoder.py` and return the run directory."""
    folder = tmp_path_factory.mktemp("example") / "run"
    options = ["--batch-size", "1,4", "--draft-tokens", "2,4", "--max-new-tokens", "12", "--limit", "8", "--quiet"]
    decoder = "docs/examples/my_decoder.py:decode"
    program = [sys.executable, "-W", "error::FutureWarning", "-m", "specaudit", "run", "--decoder", decoder, *options]
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "SPECAUDIT_CACHE": str(folder.parent / "cache")}
    result = subprocess.run(
        [*program, "--out", str(folder)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    (folder.parent / "stdout").write_text(result.stdout, encoding="utf-8")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr == ""
    return folder


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_example_is_lossless(example_run: Path) -> None:
    report = json.loads((example_run / "report.json").read_text(encoding="utf-8"))
    assert report["verdict"] == "lossless"
    assert report["exit_code"] == 0
    assert len(report["arms"]) == 4
    for arm in report["arms"]:
        assert arm["verdict"] == "lossless"
        assert arm["cases"] == 8
        assert 0 < arm["acceptance"]["count"] < arm["acceptance"]["total"]  # it speculates, and rollback was exercised


def test_the_run_directory_holds_the_files_and_fields_that_are_documented(example_run: Path) -> None:
    document = (ROOT / "docs" / "run-directory.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `(\w+\.jsonl?)` \|", document, flags=re.MULTILINE))
    assert {path.name for path in example_run.iterdir()} == documented - {"controls.jsonl"}, "no floor was needed"
    for file, record in (("samples.jsonl", CaseResult), ("units.jsonl", UnitTiming)):
        for line in lines(example_run / file):
            assert list(line) == [field.name for field in fields(record)]
    manifest = json.loads((example_run / "manifest.json").read_text(encoding="utf-8"))
    section = document.partition("## manifest.json")[2].partition("<!--")[0]
    keys = set(re.findall(r"`(\w+)`", section))
    assert set(manifest) <= keys
    assert set(manifest["effective"]) <= keys
    report = json.loads((example_run / "report.json").read_text(encoding="utf-8"))
    section = document.partition("## report.json")[2]
    assert set(report) - {"schema_version"} <= set(re.findall(r"`(\w+)`", section))


def test_the_readme_shows_a_report_of_today(example_run: Path) -> None:
    """The form of the report in the README is that of a report now; its figures are those of some day."""
    (block,) = [block for block in blocks(README) if block.text.startswith("$ specaudit run")]
    shown = block.text.splitlines()
    (options,) = re.findall(r"^DEMO := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert shown[0] == f"$ specaudit {options}"
    now = (example_run.parent / "stdout").read_text(encoding="utf-8").splitlines()
    (heading,) = [line.split() for line in now if line.startswith("decoder ")]
    (shown_heading,) = [line.split() for line in shown if line.startswith("decoder ")]
    optional = {"K", "more"}
    assert [word for word in shown_heading if word not in optional] == [
        word for word in heading if word not in optional
    ]
    assert shown[-1].startswith("specaudit: failed (exit 1): ")
    assert max(map(len, shown[1:-1])) <= 80


def test_specbench_is_read_as_the_readme_says(in_folder: Path) -> None:
    path = os.environ.get("SPECAUDIT_SPECBENCH")
    if not path:
        pytest.skip("SPECAUDIT_SPECBENCH does not name SpecBench's question.jsonl")
    options = ["--limit", "3", "--max-new-tokens", "4", "--batch-size", "2", "--out", "run", "--quiet"]
    result = specaudit("run", "--prompts", f"specbench:{path}", *options)
    assert result.exit_code == 3, result.stderr  # four tokens reject and accept too little to show a fault
    assert len({case["category"] for case in lines(in_folder / "run" / "samples.jsonl")}) == 3
