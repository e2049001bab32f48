"""The prompts that come with specaudit."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from unicodedata import name

import pytest
from transformers import AutoTokenizer

import specaudit.bundled_files
from specaudit.bundled_files import bundled_folder
from specaudit.core.errors import InputError, SpecauditError
from specaudit.models.bundled import bundled_model
from specaudit.models.rendering import render
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


def test_the_long_set_begins_with_the_short_one() -> None:
    whole = load_prompts("bundled:96")
    assert whole.name == "bundled:96"
    assert len(whole.prompts) == 96
    assert whole.prompts[:24] == load_prompts("bundled").prompts
    assert load_prompts("bundled").digest == "6343a111325f85c6e23d5b9756cccb3248b8078fb44acda3d78a3955352177fa"
    assert whole.digest == "d682c7d949e45926faedae61b29a4340ce4dd2fa2b66890ba94d19b76f9db9f4"


def test_every_24_prompts_have_the_same_spread() -> None:
    categories = [prompt.category for prompt in load_prompts("bundled:96").prompts]
    spreads = [Counter(categories[first : first + 24]) for first in range(0, 96, 24)]
    assert spreads == [spreads[0]] * 4
    assert spreads[0].most_common(1) == [("prose", 7)]


def test_the_long_set_has_what_decoders_stumble_over() -> None:
    prompts = load_prompts("bundled:96").prompts
    texts = [prompt.text for prompt in prompts if prompt.text is not None]
    chats = [prompt.messages for prompt in prompts if prompt.messages]
    assert len(set(texts)) + len(set(chats)) == 96
    assert sum(len(text) == 1 for text in texts) == 3
    assert any(text.endswith("  ") for text in texts)
    assert any(text.endswith("\n") for text in texts)
    assert any("<|pad|>" in text for text in texts)
    assert any(text.startswith("<|endoftext|>") for text in texts)
    assert any(other.startswith(text) for text in texts for other in texts if other != text and len(text) > 20)
    assert {len(chat) for chat in chats} == {1, 2, 3, 4, 5}
    assert {chat[-1].role for chat in chats} == {"user"}
    scripts = {name(char).split()[0] for prompt in prompts if prompt.category == "script" for char in prompt.text or ""}
    assert {"GREEK", "CJK", "CYRILLIC", "HIRAGANA", "ARABIC", "DEVANAGARI", "HANGUL"} <= scripts


def test_the_long_set_differs_in_tokens_too() -> None:
    tokenizer = AutoTokenizer.from_pretrained(bundled_model("llama", "target"))
    prompts = load_prompts("bundled:96").prompts
    ids = [tuple(render(prompt, tokenizer, chat_template=False)) for prompt in prompts]
    assert len(set(ids)) == 96
    assert 270 <= max(map(len, ids)) <= 300
    by_name = {prompt.prompt_id: one for prompt, one in zip(prompts, ids, strict=True)}
    beginning = by_name["prefix-short"]
    assert by_name["prefix-long"][: len(beginning)] == beginning


@pytest.mark.parametrize("spec", ["bundled", "bundled:96"])
def test_eight_bundled_prompts_are_one_of_each_category(spec: str) -> None:
    prompts = load_prompts(spec, limit=8).prompts
    assert len({prompt.category for prompt in prompts}) == 8


def test_an_unknown_bundled_set_names_both() -> None:
    with pytest.raises(InputError, match="bundled:48") as caught:
        load_prompts("bundled:48")
    assert caught.value.way_out == "known: bundled (24 prompts), bundled:96 (96 prompts)"


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
