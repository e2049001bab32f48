"""Prompts as token ids."""

from __future__ import annotations

from typing import Any

import pytest
from tokenizers.processors import TemplateProcessing
from transformers import AutoTokenizer

from specaudit.core.errors import InputError
from specaudit.core.prompt import Message, Prompt
from specaudit.models.bundled import bundled_model
from specaudit.models.rendering import render
from specaudit.prompts import load_prompts
from tests.models.tiny_models import CHAT_TEMPLATE, tiny_tokenizer

EOS, BOS, ASSISTANT = 0, 2, 3
CHAT = Prompt(prompt_id="c", messages=(Message(role="user", content="hi"),), source="set:1")


def _text(text: str) -> Prompt:
    return Prompt(prompt_id="t", text=text, source="set:2")


def _with_bos(**settings: Any) -> Any:
    tokenizer = tiny_tokenizer(**settings)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|bos|> $A", special_tokens=[("<|bos|>", BOS)]
    )
    return tokenizer


def test_text_is_encoded_as_the_tokenizer_does_by_default() -> None:
    plain = render(_text("abc"), tiny_tokenizer(), chat_template=False)
    assert len(plain) == 3
    assert render(_text("abc"), _with_bos(), chat_template=False) == [BOS, *plain]
    assert all(type(token_id) is int for token_id in plain)


def test_the_text_of_a_special_token_becomes_that_token() -> None:
    assert render(_text("a<|endoftext|>b"), tiny_tokenizer(), chat_template=False)[1] == EOS


def test_a_chat_ends_where_the_assistant_answers() -> None:
    tokenizer = tiny_tokenizer(chat_template=CHAT_TEMPLATE)
    ids = render(CHAT, tokenizer, chat_template=False)
    assert ids[-2:] == [EOS, ASSISTANT]
    assert tokenizer.decode(ids) == "<|user|>hi<|endoftext|><|assistant|>"


def test_a_text_can_be_wrapped_as_a_chat() -> None:
    tokenizer = tiny_tokenizer(chat_template=CHAT_TEMPLATE)
    assert render(_text("hi"), tokenizer, chat_template=True) == render(CHAT, tokenizer, chat_template=True)


def test_a_template_that_writes_bos_gets_no_second_one() -> None:
    ids = render(CHAT, _with_bos(chat_template="{{ bos_token }}" + CHAT_TEMPLATE), chat_template=False)
    assert ids.count(BOS) == 1
    assert ids[0] == BOS


def test_a_template_without_bos_gets_none() -> None:
    assert BOS not in render(CHAT, _with_bos(chat_template=CHAT_TEMPLATE), chat_template=False)


@pytest.mark.parametrize("prompt", [CHAT, _text("hi")])
def test_a_chat_needs_a_template(prompt: Prompt) -> None:
    with pytest.raises(InputError, match=f"prompt '{prompt.prompt_id}' cannot be rendered") as caught:
        render(prompt, tiny_tokenizer(), chat_template=True)
    assert caught.value.where == prompt.source
    assert "no chat template" in (caught.value.way_out or "")


def test_a_template_that_refuses_says_why() -> None:
    template = "{{ raise_exception('no system turns please') }}"
    with pytest.raises(InputError, match="no system turns please"):
        render(CHAT, tiny_tokenizer(chat_template=template), chat_template=False)


def test_a_prompt_without_tokens_is_refused() -> None:
    with pytest.raises(InputError, match="'t' has no tokens"):
        render(_text(""), tiny_tokenizer(), chat_template=False)
    with pytest.raises(InputError, match="'c' has no tokens"):
        render(CHAT, tiny_tokenizer(chat_template="{{ '' }}"), chat_template=False)


def test_bundled_prompts_are_of_many_lengths_up_to_300_tokens() -> None:
    tokenizer = AutoTokenizer.from_pretrained(bundled_model("llama", "target"))
    lengths = [len(render(prompt, tokenizer, chat_template=False)) for prompt in load_prompts(None).prompts]
    assert min(lengths) <= 2  # the tokenizer may add a BOS
    assert 200 <= max(lengths) <= 300
    assert len(set(lengths)) >= 15
