"""The noise floor of a run: measured in the arm's shapes, and void where a control is not right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from specaudit import noise
from specaudit.core.scores import Zone
from specaudit.decoders import greedy, greedy_batch
from specaudit.faults.authority import uncached_greedy
from specaudit.models.loading import load_target
from specaudit.models.options import LoadOptions
from specaudit.noise import Noise, draft_choice_of

if TYPE_CHECKING:
    from specaudit.models.loaded import LoadedModel

PROMPTS = [[1, 72, 105, 33], [1, 300, 17], [1, 40, 41, 42, 43, 44, 45]]


@pytest.fixture(scope="module")
def target() -> LoadedModel:
    return load_target("bundled:llama", options=LoadOptions(dtype="bfloat16"))


def made(target: LoadedModel) -> Noise:
    options: dict[str, Any] = {"max_new_tokens": 16, "eos_token_ids": {0}, "pad_token_id": 1, "draft_tokens": 0}
    outputs = [greedy.decode(target.model, None, None, [prompt], **options)[0] for prompt in PROMPTS]
    references = {tuple(prompt): tuple(output) for prompt, output in zip(PROMPTS, outputs, strict=True)}
    return Noise(target, max_new_tokens=16, eos_token_ids=frozenset({0}), references=references)


def test_the_reference_is_excused_and_nonsense_is_not(target: LoadedModel) -> None:
    measured = made(target)
    prompt = tuple(PROMPTS[0])
    output = measured._references[prompt]
    excuse = measured.excuse(prompt, output, batch_size=4, draft_tokens=4)
    assert excuse.zone is Zone.TIE
    worst = int(target.model(torch.tensor([[*prompt, *output[:2]]])).logits[0, -1].argmin())
    wrong = measured.excuse(prompt, (*output[:2], worst, *output[3:]), batch_size=4, draft_tokens=4)
    assert (wrong.zone, wrong.place) == (Zone.NEVER, 2)
    (control,) = measured.take_unreported()
    assert control.floor.outputs == 3 * len(PROMPTS)
    assert measured.take_unreported() == ()


def test_a_control_that_is_not_right_gives_no_floor(target: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    original = greedy_batch.decode

    def shifted(model: Any, *arguments: Any, **options: Any) -> Any:
        handle = model.model.register_forward_pre_hook(
            lambda module, given, named: (given, {**named, "position_ids": named["position_ids"] + 1}), with_kwargs=True
        )
        try:
            return original(model, *arguments, **options)
        finally:
            handle.remove()

    monkeypatch.setattr(noise.greedy_batch, "decode", shifted)
    measured = made(target)
    control = measured.control(2, 3)
    assert control.floor is None
    assert "control 'greedy-batch'" in control.problem


def test_what_a_draft_would_propose(target: LoadedModel) -> None:
    choose = draft_choice_of(target.model)
    assert [choose(PROMPTS[0])] == uncached_greedy(target.model, PROMPTS[0], max_new_tokens=1)
    assert draft_choice_of(None)(PROMPTS[0]) is None
