"""Bad input: a clear message with a way out, exit code 2, no traceback, nothing left behind; snapshots."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from tests.cli.command import specaudit

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

BAD = {
    "missing-prompt-file": ["run", "--prompts", "nowhere.txt"],
    "unknown-prompt-format": ["run", "--prompts", "prompts.docx"],
    "bad-json-line": ["run", "--prompts", "bad.jsonl"],
    "missing-field": ["run", "--prompts", "other.jsonl"],
    "misspelt-field": ["run", "--prompts", "other.jsonl", "--field", "qestion"],
    "empty-prompt-set": ["run", "--prompts", "empty.txt"],
    "duplicate-ids": ["run", "--prompts", "twice.jsonl"],
    "unknown-decoder": ["run", "--decoder", "eqpsec"],
    "decoder-twice": ["run", "--decoder", "eqspec,eqspec"],
    "no-decoder": ["run", "--decoder", ","],
    "decoder-file-missing": ["run", "--decoder", "mine.py:decode"],
    "decoder-signature": ["run", "--decoder", "narrow.py:decode"],
    "unknown-family": ["run", "--target", "bundled:lama"],
    "missing-model-folder": ["run", "--target", "./no-such-model"],
    "folder-without-model": ["run", "--target", "./folder"],
    "unknown-draft": ["run", "--draft", "noise:0.1"],
    "layers-too-many": ["run", "--draft", "layers:99"],
    "stress-out-of-range": ["run", "--draft", "stress:1.5"],
    "stress-for-a-module": ["run", "--draft", "stress:0.5", "--decoder", "good.py:decode"],
    "no-draft-tokens": ["run", "--draft-tokens", "0"],
    "negative-batch": ["run", "--batch-size", "1,-4"],
    "batch-not-a-number": ["run", "--batch-size", "four"],
    "no-new-tokens": ["run", "--max-new-tokens", "0"],
    "limit-zero": ["run", "--limit", "0"],
    "threads-zero": ["run", "--threads", "0"],
    "unknown-dtype": ["run", "--dtype", "float23"],
    "unknown-device": ["run", "--device", "warp"],
    "unknown-attention": ["run", "--attn", "sdpaa"],
    "eos-outside": ["run", "--eos-ids", "99999"],
    "eos-not-an-id": ["run", "--eos-ids", "</s>"],
    "eos-contradiction": ["run", "--eos-ids", "2", "--ignore-eos"],
    "out-not-empty": ["run", "--out", "folder-with-file"],
    "out-below-a-file": ["run", "--out", "bad.jsonl/run"],
    "json-below-a-file": ["run", "--json", "bad.jsonl/report.json"],
    "bad-table-row": ["run", "--prompts", "torn.csv"],
    "unknown-category": ["run", "--category", "chat,prse"],
    "sample-and-limit": ["run", "--sample", "4", "--limit", "4"],
    "standard-input-empty": ["run", "--prompts", "-"],
    "no-second-turns": ["run", "--prompts", "specbench:once.jsonl", "--turn", "2"],
    "unknown-option": ["run", "--dcoder", "eqspec"],
    "unknown-command": ["rnu"],
}


@pytest.fixture
def workshop(in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with files that are wrong in one way each; nothing is piped in."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    (in_folder / "torn.csv").write_text('id,prompt\na,"one\ntwo"\nb\n')
    (in_folder / "once.jsonl").write_text('{"question_id": 1, "category": "qa", "turns": ["one?"]}\n')
    (in_folder / "bad.jsonl").write_text('{"prompt": "one"}\n{"prompt": "two"\n')
    (in_folder / "other.jsonl").write_text('{"question": "one?", "answer": "1"}\n')
    (in_folder / "twice.jsonl").write_text('{"id": "a", "prompt": "one"}\n{"id": "a", "prompt": "two"}\n')
    (in_folder / "empty.txt").write_text("\n\n")
    (in_folder / "prompts.docx").write_text("x")
    (in_folder / "folder").mkdir()
    (in_folder / "folder-with-file").mkdir()
    (in_folder / "folder-with-file" / "kept").write_text("kept")
    (in_folder / "narrow.py").write_text("def decode(target, prompts):\n    return prompts\n")
    (in_folder / "good.py").write_text("from specaudit.decoders.eqspec import decode\n")
    return in_folder


@pytest.mark.parametrize("name", BAD)
def test_message_and_way_out(name: str, workshop: Path, snapshot: SnapshotAssertion) -> None:
    before = sorted(path.relative_to(workshop) for path in workshop.rglob("*"))
    result = specaudit(*BAD[name])
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert str(result) == snapshot
    left = [path for path in workshop.rglob("*") if path.relative_to(workshop) not in before]
    assert [path for path in left if path.name not in {"runs", "__pycache__"} and path.suffix != ".pyc"] == []
