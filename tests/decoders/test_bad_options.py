"""Options that decoders, drafts and seeds refuse: a message with a way out, before anything is loaded; snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.command import specaudit

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

BAD = {
    "seed-not-a-number": ["--seed", "one"],
    "seed-negative": ["--seed", "0,-1"],
    "seed-twice": ["--seed", "1,01"],
    "ngram-of-nothing": ["--draft", "ngram:0"],
    "ngram-not-a-number": ["--draft", "ngram:two"],
    "stress-for-dsd": ["--draft", "stress:0.5", "--decoder", "dsd"],
    "ngram-for-hf-assisted": ["--draft", "ngram", "--decoder", "greedy-batch,hf-assisted", "--batch-size", "1"],
    "ngram-for-code": ["--draft", "ngram", "--decoder", "theirs.py:decode"],
    "no-batch-size-left": ["--decoder", "hf-assisted", "--batch-size", "4,8"],
    "timeout-of-nothing": ["--case-timeout", "0"],
    "timeout-not-a-number": ["--case-timeout", "nan"],
    "generation-config-for-code": ["--decoder", "theirs.py:decode", "--use-generation-config"],
}


@pytest.mark.parametrize("name", BAD)
def test_message_and_way_out(name: str, in_folder: Path, snapshot: SnapshotAssertion) -> None:
    (in_folder / "theirs.py").write_text(
        "def decode(target, draft, tokenizer, prompts, *, max_new_tokens, draft_tokens, eos_token_ids, pad_token_id):\n"
        "    return []\n"
    )
    result = specaudit("run", *BAD[name])
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert str(result) == snapshot
