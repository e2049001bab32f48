"""The taps change no bit, leave nothing behind, and record what attention consumed."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from transformers import DynamicCache
from transformers.cache_utils import Cache
from transformers.modeling_utils import AttentionInterface

from specaudit.batch.cache import accepted_arguments
from specaudit.faults.random_models import BUILDERS, random_draft, random_model
from specaudit.trace.recorder import Recorder
from specaudit.trace.records import UNKNOWN

if TYPE_CHECKING:
    from transformers import PreTrainedModel

PROMPTS = torch.tensor([[1, 1, 5, 9, 11], [7, 30, 2, 8, 9]])
MASK = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
POSITIONS = torch.tensor([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])


@torch.no_grad()
def two_forwards(model: PreTrainedModel, cache: Any = None) -> list[torch.Tensor]:
    """Return the logits of a padded prefill and of a block of two tokens."""
    cache = DynamicCache() if cache is None else cache
    options = {"cache" if "cache" in accepted_arguments(model) else "past_key_values": cache}
    first = model(PROMPTS, attention_mask=MASK, position_ids=POSITIONS, **options).logits
    block = torch.tensor([[4, 6], [1, 3]])
    mask = torch.cat([MASK, torch.ones_like(block)], dim=1)
    second = model(block, attention_mask=mask, position_ids=torch.tensor([[3, 4], [5, 6]]), **options).logits
    return [first, second]


def installed(model: PreTrainedModel) -> list[Any]:
    """Return everything that a recorder replaces or adds."""
    classes = [Cache]
    for cls in classes:
        classes += cls.__subclasses__()
    return [
        dict(AttentionInterface._global_mapping),
        {cls: cls.__dict__.get("update") for cls in classes},
        [dict(module._forward_hooks) for module in model.modules()],
        [dict(module._forward_pre_hooks) for module in model.modules()],
        model.config._attn_implementation,
    ]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("architecture", sorted(BUILDERS))
def test_logits_keep_every_bit(architecture: str, dtype: torch.dtype) -> None:
    model = random_model(architecture, dtype)
    before = two_forwards(model)
    with Recorder(model) as recorder:
        during = two_forwards(model)
    for one, other in zip(before, during, strict=True):
        assert torch.equal(one, other)
    assert [step.obstacles for step in recorder.trace.steps] == [(), ()]
    assert recorder.trace.obstacles == []


@pytest.mark.parametrize("architecture", sorted(BUILDERS))
def test_steps_say_what_was_consumed(architecture: str) -> None:
    model = random_model(architecture)
    with Recorder(model) as recorder:
        logits = two_forwards(model)
    prefill, block = recorder.trace.steps
    assert np.array_equal(prefill.input_ids, PROMPTS)
    assert block.position_ids.tolist() == [[3, 4], [5, 6]]
    assert prefill.cache == block.cache == 0
    assert block.is_complete
    view = block.views[0]
    assert sorted(layer for each in block.views for layer in each.layers) == [0, 1, 2]
    assert view.visible[0].tolist() == [[False] * 2 + [True] * 4 + [False], [False] * 2 + [True] * 5]
    assert view.own_slots.tolist() == [[5, 6], [5, 6]]
    assert (view.contents != UNKNOWN).all()
    writes = [recorder.trace.writes_of[content][0] for content in view.contents[1]]
    assert [recorder.trace.writes[write].token for write in writes] == [7, 30, 2, 8, 9, 1, 3]
    for step, seen in zip(recorder.trace.steps, logits, strict=True):
        assert np.array_equal(step.top_ids[..., 0], seen.argmax(-1))
        assert np.array_equal(step.top_logits[..., 0], seen.double().amax(-1))


def test_everything_is_put_back() -> None:
    model = random_model("llama")
    before = installed(model)
    with Recorder(model):
        assert installed(model) != before
        two_forwards(model)
    assert installed(model) == before


@pytest.mark.parametrize("where", ["decoder", "forward"])
def test_everything_is_put_back_after_an_exception(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = copy.deepcopy(random_model("llama"))
    before = installed(model)

    def fail(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("stop")

    def decode(recorder: Recorder) -> None:
        with recorder, monkeypatch.context() as patch:
            two_forwards(model)
            if where == "decoder":
                fail()
            patch.setattr(model.model.layers[1], "forward", fail)
            two_forwards(model)

    recorder = Recorder(model)
    with pytest.raises(RuntimeError, match="stop"):
        decode(recorder)
    assert installed(model) == before
    assert len(recorder.trace.steps) == 2  # the forward that raised is none


def test_a_failed_forward_does_not_spoil_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    model = copy.deepcopy(random_model("llama"))

    def fail(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("stop")

    with Recorder(model) as recorder:
        with monkeypatch.context() as patch:
            patch.setattr(model.model.layers[1], "forward", fail)
            with pytest.raises(RuntimeError, match="stop"):
                two_forwards(model)
        two_forwards(model)
    assert [step.obstacles for step in recorder.trace.steps] == [(), ()]


def test_a_failed_entry_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model("llama")
    before = installed(model)

    def fail(self: Recorder) -> None:
        raise RuntimeError("no hooks")

    monkeypatch.setattr(Recorder, "_hooks", fail)
    with pytest.raises(RuntimeError, match="no hooks"), Recorder(model):
        pass
    assert installed(model) == before


def test_two_recorders_at_once() -> None:
    """Each hears its own model, whatever the other does; both are put back."""
    target, other = random_model("llama"), random_draft("llama", 0.05)
    before = installed(target), installed(other)
    with Recorder(target) as outer, Recorder(other) as inner:
        two_forwards(target)
        two_forwards(other)
        two_forwards(target)
    assert (len(outer.trace.steps), len(inner.trace.steps)) == (4, 2)
    assert [step.obstacles for recorder in (outer, inner) for step in recorder.trace.steps] == [()] * 6
    assert outer.trace.steps[0].top_ids.tolist() != inner.trace.steps[0].top_ids.tolist()
    assert (installed(target), installed(other)) == before


def test_caches_are_numbered() -> None:
    model = random_model("llama")
    first = DynamicCache()
    with Recorder(model) as recorder:
        two_forwards(model, first)
        two_forwards(model)
    assert [step.cache for step in recorder.trace.steps] == [0, 0, 1, 1]


@pytest.mark.parametrize("keep", [0, 1, 3])
def test_logits_are_matched_with_their_queries(keep: int) -> None:
    model = random_model("llama")
    with torch.no_grad(), Recorder(model) as recorder:
        logits = model(PROMPTS, attention_mask=MASK, position_ids=POSITIONS, logits_to_keep=keep).logits
    (step,) = recorder.trace.steps
    count = keep or PROMPTS.shape[1]
    assert np.array_equal(step.top_ids[:, -count:, 0], logits.argmax(-1))
    assert (step.top_ids[:, : PROMPTS.shape[1] - count] == UNKNOWN).all()


def test_equal_rows_get_equal_logits() -> None:
    model = random_model("llama")
    with torch.no_grad(), Recorder(model) as recorder:
        logits = model(PROMPTS[[1, 1, 1]]).logits
    (step,) = recorder.trace.steps
    assert np.array_equal(step.top_ids[..., 0], logits.argmax(-1))


def test_a_head_called_by_the_decoder_piece_by_piece() -> None:
    model = random_model("gpt2")
    with torch.no_grad(), Recorder(model) as recorder:
        hidden = model.transformer(PROMPTS).last_hidden_state
        first, last = model.lm_head(hidden[:, :2]), model.lm_head(hidden[:, -1])
        model.lm_head(hidden[:, 2] * 2)  # no hidden state of the step
    (step,) = recorder.trace.steps
    assert np.array_equal(step.top_ids[:, :2, 0], first.argmax(-1))
    assert np.array_equal(step.top_ids[:, -1, 0], last.argmax(-1))
    assert (step.top_ids[:, 2:4] == UNKNOWN).all()


def test_every_maximum_of_a_tie_is_kept() -> None:
    model = copy.deepcopy(random_model("llama"))
    with torch.no_grad():
        model.lm_head.weight[10:13] = model.lm_head.weight[10]
        model.lm_head.weight[10:13] += model(PROMPTS[1:], output_hidden_states=True).hidden_states[-1][0, -1]
        with Recorder(model) as recorder:
            model(PROMPTS[1:])
    assert recorder.trace.steps[0].tied_ids[0, 4] == (10, 11, 12)


def test_final_logits_win_over_the_heads() -> None:
    """A cap on the logits, as in Gemma 2, is part of what the decoder sees."""
    model = copy.deepcopy(random_model("gemma3"))
    model.config.final_logit_softcapping = 1.0
    with torch.no_grad(), Recorder(model) as recorder:
        logits = model(PROMPTS[1:]).logits
    assert np.array_equal(recorder.trace.steps[0].top_logits[..., 0], logits.double().amax(-1))
