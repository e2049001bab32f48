"""The draft of a run: a new one for each seed that changes it, one at a time."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

from specaudit.decoders.drafting import StressDraft
from specaudit.decoders.ngram import NgramDraft
from specaudit.draft_supply import DraftSupply
from specaudit.models.loading import load_pair
from specaudit.models.options import LoadOptions

OPTIONS = LoadOptions(device="cpu", seed=3)


def supply(draft: str) -> DraftSupply:
    """Return the supply of a draft for the bundled target."""
    pair = load_pair("bundled:llama", draft, options=OPTIONS)
    return DraftSupply(pair, draft, options=OPTIONS, references={})


def weights(model: torch.nn.Module) -> torch.Tensor:
    """Return some weights of a model."""
    return next(parameter for parameter in model.parameters() if parameter.dim() > 1).clone()


def test_noisy_drafts_differ_by_seed_and_come_back_bit_equal() -> None:
    drafts = supply("noisy:0.1")
    first = weights(drafts.for_seed(3))
    other = weights(drafts.for_seed(4))
    assert not torch.equal(first, other)
    assert torch.equal(first, weights(drafts.for_seed(3)))
    loaded = load_pair("bundled:llama", "noisy:0.1", options=LoadOptions(device="cpu", seed=4)).draft
    assert torch.equal(other, weights(loaded.model))


def test_only_one_noisy_draft_is_kept() -> None:
    drafts = supply("noisy:0.1")
    old = weakref.ref(drafts.for_seed(3))
    new = drafts.for_seed(4)
    gc.collect()
    assert old() is None
    assert drafts.models() == [new]


def test_a_decoder_without_a_seed_gets_what_there_is() -> None:
    drafts = supply("noisy:0.1")
    assert drafts.for_seed(None) is drafts.for_seed(3)


@pytest.mark.parametrize("draft", ["layers:1", "bundled:llama"])
def test_other_models_stay(draft: str) -> None:
    drafts = supply(draft)
    assert drafts.for_seed(3) is drafts.for_seed(4)


def test_drafters() -> None:
    stress = supply("stress:0.5")
    assert stress.models() == []
    assert [stress.for_seed(seed).seed for seed in (3, 4, None)] == [3, 4, 3]
    assert isinstance(stress.for_seed(3), StressDraft)
    ngram = supply("ngram:3").for_seed(4)
    assert isinstance(ngram, NgramDraft)
    assert ngram.size == 3
