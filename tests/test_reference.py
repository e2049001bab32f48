"""The reference is found again by everything that decides it, and by nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from specaudit.models.loading import load_pair
from specaudit.models.options import LoadOptions
from specaudit.reference import Reference

if TYPE_CHECKING:
    from pathlib import Path

    from specaudit.models.loaded import LoadedModel

PROMPT = (5, 40, 41, 300)


@pytest.fixture(scope="module")
def target() -> LoadedModel:
    return load_pair("bundled:llama", None, options=LoadOptions(device="cpu")).target


@pytest.fixture(autouse=True)
def _fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECAUDIT_CACHE", str(tmp_path))


def reference(target: LoadedModel, *, budget: int = 6, eos: frozenset[int] = frozenset()) -> Reference:
    return Reference(target, max_new_tokens=budget, eos_token_ids=eos)


def test_the_second_time_it_is_read(target: LoadedModel) -> None:
    first, second = (reference(target).decode(PROMPT) for _ in range(2))
    assert (first.cached, second.cached) == (False, True)
    assert first.output_ids == second.output_ids
    assert len(first.output_ids) == 6


def test_other_settings_are_other_references(target: LoadedModel) -> None:
    output = reference(target).decode(PROMPT).output_ids
    longer = reference(target, budget=9).decode(PROMPT)
    assert not longer.cached
    assert longer.output_ids[:6] == output
    ended = reference(target, eos=frozenset({output[2]})).decode(PROMPT)
    assert not ended.cached
    assert ended.output_ids == output[: output.index(output[2]) + 1]
    assert not reference(target).decode((*PROMPT, 7)).cached


def test_other_weights_are_another_reference(target: LoadedModel) -> None:
    reference(target).decode(PROMPT)
    draft = load_pair("bundled:llama", None, options=LoadOptions(device="cpu")).draft
    assert not reference(draft).decode(PROMPT).cached
    exact = load_pair("bundled:llama", None, options=LoadOptions(device="cpu", dtype="float64")).target
    assert not reference(exact).decode(PROMPT).cached


@pytest.mark.parametrize("content", ["", "[1, 2", "null", "[]", '{"output_ids": [1]}'])
def test_a_file_that_cannot_be_read_is_computed_again(target: LoadedModel, tmp_path: Path, content: str) -> None:
    expected = reference(target).decode(PROMPT).output_ids
    (path,) = tmp_path.glob("references/*/*.json")
    path.write_text(content)
    again = reference(target).decode(PROMPT)
    assert not again.cached
    assert again.output_ids == expected
    assert reference(target).decode(PROMPT).cached


def test_a_cache_that_cannot_be_written_costs_time_only(
    target: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPECAUDIT_CACHE", str(tmp_path / "file" / "below"))
    assert not reference(target).decode(PROMPT).cached
