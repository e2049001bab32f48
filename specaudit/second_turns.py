"""Second turns: a question about an answer that the target has to give first.

Benchmarks of speculative decoding feed a model its own first answer before they ask on. Here it is the reference's, the
same for every decoder under audit, so that all are asked the same prompt.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from specaudit.core.errors import InputError, ModelError
from specaudit.core.prompt import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.core.prompt import Prompt
    from specaudit.models.loaded import LoadedModel
    from specaudit.prompts import PromptSet
    from specaudit.reference import Reference


def require_chat_template(prompt_set: PromptSet, target: LoadedModel) -> None:
    """Raise InputError where a prompt has a second turn and the target's tokenizer no template to put it in."""
    if prompt_set.has_follow_ups and not getattr(target.tokenizer, "chat_template", None):
        raise InputError(
            "a second turn needs a chat template, the target's tokenizer has none",
            where="--turn 2",
            way_out="take an instruction-tuned model, or leave --turn out",
        )


def with_first_answers(prompt_set: PromptSet, first_ids: Sequence[Sequence[int]], reference: Reference) -> PromptSet:
    """Return the set with every second turn written out as a chat: question, the reference's answer, second question.

    The answer is what the reference decodes from `first_ids` (the ids of each prompt's first turn, in order): at most
    its `max_new_tokens` tokens, as text without special tokens. It may stop in the middle of a sentence.

    Raises:
        ModelError: the reference cannot answer a first turn.
    """
    prompts = [_asked_on(prompt, ids, reference) for prompt, ids in zip(prompt_set.prompts, first_ids, strict=True)]
    return replace(prompt_set, prompts=tuple(prompts))


def _asked_on(prompt: Prompt, first_ids: Sequence[int], reference: Reference) -> Prompt:
    if prompt.follow_up is None:
        return prompt
    output = reference.decode(first_ids)
    if output.error is not None:
        raise ModelError(
            f"the first turn of '{prompt.prompt_id}' has no answer to ask on about: {output.error}",
            where=prompt.source,
            way_out="try another --dtype, or leave --turn out",
        )
    answer = str(reference.target.tokenizer.decode(list(output.output_ids), skip_special_tokens=True))
    turns = (("user", prompt.text or ""), ("assistant", answer), ("user", prompt.follow_up))
    messages = tuple(Message(role=role, content=content) for role, content in turns)
    return replace(prompt, text=None, follow_up=None, messages=messages)
