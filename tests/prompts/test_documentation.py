"""What `docs/prompts.md` says is what the command takes."""

from __future__ import annotations

import re
from pathlib import Path

from specaudit.prompts import fields, gold, records
from specaudit.prompts.prompt_set import BUNDLED_SIZES
from tests.cli.command import specaudit

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "prompts.md").read_text(encoding="utf-8")


def test_the_page_names_the_options_that_there_are() -> None:
    options = set(re.findall(r"--[a-z-]+", specaudit("run", "--help").stdout))
    assert set(re.findall(r"`(--[a-z-]+)", PAGE)) <= options


def test_the_page_names_every_default_field_and_bundled_set() -> None:
    names = (*fields.DEFAULT_FIELDS, *gold.DEFAULT_FIELDS, *records.ID_FIELDS, *BUNDLED_SIZES)
    assert [name for name in names if f"`{name}`" not in PAGE] == []
