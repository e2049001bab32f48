"""From a prompt to the token ids that a decoder is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specaudit.core.errors import InputError

if TYPE_CHECKING:
    from specaudit.core.prompt import Prompt


def render(prompt: Prompt, tokenizer: Any, *, chat_template: bool) -> list[int]:
    """Return the ids of a prompt; never empty.

    Plain text is encoded as the tokenizer does by default: with a BOS where it adds one, and with the text of a special
    token (such as `<|endoftext|>`) becoming that token. A chat goes through the tokenizer's chat template, ending where
    the assistant is to answer; the special tokens are then those that the template wrote, and no others.

    Args:
        prompt: text or chat.
        tokenizer: a transformers tokenizer.
        chat_template: treat plain text as a chat of one user turn.

    Raises:
        InputError: a chat and no usable template, or a prompt without any token.
    """
    if prompt.messages:
        turns = [{"role": turn.role, "content": turn.content} for turn in prompt.messages]
    else:
        turns = [{"role": "user", "content": prompt.text or ""}]
    is_chat = bool(prompt.messages) or chat_template
    text = _chat_text(prompt, turns, tokenizer) if is_chat else prompt.text or ""
    ids = [int(token_id) for token_id in tokenizer(text, add_special_tokens=not is_chat)["input_ids"]]
    if not ids:
        raise InputError(f"prompt '{prompt.prompt_id}' has no tokens", where=prompt.source, way_out="give it a text")
    return ids


def _chat_text(prompt: Prompt, turns: list[dict[str, str]], tokenizer: Any) -> str:
    # As text, because what `apply_chat_template` returns when it tokenizes changed in transformers 5.
    try:
        return str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))
    except Exception as error:  # no template: ValueError; a template that refuses the turns: any error of jinja2's
        way_out = (
            "take a template that can render it, or a set without chats"
            if getattr(tokenizer, "chat_template", None)
            else "the tokenizer has no chat template: take an instruction-tuned model, or a set without chats"
        )
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(
            f"prompt '{prompt.prompt_id}' cannot be rendered as a chat: {reason}", where=prompt.source, way_out=way_out
        ) from error
