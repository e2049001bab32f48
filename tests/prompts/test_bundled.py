"""The prompts that come with specaudit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import specaudit.bundled_files
from specaudit.bundled_files import bundled_folder
from specaudit.core.errors import SpecauditError
from specaudit.prompts import load_prompts

if TYPE_CHECKING:
    from pathlib import Path


def test_the_bundled_set_is_the_default() -> None:
    bundled = load_prompts(None)
    assert bundled == load_prompts("bundled")
    assert bundled.name == "bundled"
    assert len(bundled.prompts) == 24
    assert {prompt.source for prompt in bundled.prompts} == {"bundled"}


def test_the_bundled_set_is_varied() -> None:
    prompts = load_prompts(None).prompts
    lengths = [len(prompt.text or "") for prompt in prompts if prompt.text]
    assert min(lengths) == 1
    assert max(lengths) > 700
    assert sum(bool(prompt.messages) for prompt in prompts) == 2
    assert sum("<|endoftext|>" in (prompt.text or "")[1:-13] for prompt in prompts) == 1
    assert any("🎉" in (prompt.text or "") for prompt in prompts)


def test_eight_bundled_prompts_are_one_of_each_category() -> None:
    prompts = load_prompts(None, limit=8).prompts
    assert len({prompt.category for prompt in prompts}) == 8


def test_an_installed_package_is_preferred_to_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "specaudit"
    monkeypatch.setattr(specaudit.bundled_files, "__file__", str(package / "bundled_files.py"))
    fixtures = tmp_path / "fixtures" / "prompts"
    fixtures.mkdir(parents=True)
    # `fixtures` beside no pyproject.toml is a stranger's.
    with pytest.raises(SpecauditError, match="no bundled prompts"):
        bundled_folder("prompts")
    (tmp_path / "pyproject.toml").touch()
    assert bundled_folder("prompts") == fixtures
    installed = package / "_bundled" / "prompts"
    installed.mkdir(parents=True)
    assert bundled_folder("prompts") == installed
