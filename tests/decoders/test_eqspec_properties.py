"""EQSPEC against an uncached float64 forward: random ragged batches on nine architectures, every one traced."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings

from specaudit.decoders import eqspec
from specaudit.decoders.ngram import NgramDraft
from specaudit.faults.random_models import VOCABULARY, random_draft, random_model
from specaudit.models.loading import load_pair
from specaudit.models.options import LoadOptions
from tests.decoders.ragged_batches import RaggedBatch, check, ragged_batches

if TYPE_CHECKING:
    import torch


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "mistral", "gemma3"])
@settings(max_examples=130)
@given(batch=ragged_batches(VOCABULARY))
def test_random_models(architecture: str, batch: RaggedBatch) -> None:
    model = random_model(architecture)
    draft = random_draft(architecture, batch.scale) if batch.scale >= 0 else None
    check(eqspec.decode, model, draft, batch, VOCABULARY)


@pytest.mark.parametrize("architecture", ["opt", "gpt_neox", "phi3", "qwen3", "glm4"])
@settings(max_examples=30)
@given(batch=ragged_batches(VOCABULARY))
def test_more_architectures(architecture: str, batch: RaggedBatch) -> None:
    model = random_model(architecture)
    draft = random_draft(architecture, batch.scale) if batch.scale >= 0 else None
    check(eqspec.decode, model, draft, batch, VOCABULARY)


@settings(max_examples=30)
@given(batch=ragged_batches(VOCABULARY))
def test_with_prompt_lookup(batch: RaggedBatch) -> None:
    check(eqspec.decode, random_model("llama"), NgramDraft(1), batch, VOCABULARY)


@pytest.fixture(scope="module")
def bundled() -> tuple[torch.nn.Module, torch.nn.Module]:
    pair = load_pair("bundled:llama", None, options=LoadOptions(dtype="float64", device="cpu"))
    return pair.target.model, pair.draft.model


@settings(max_examples=40)
@given(batch=ragged_batches(1400))
def test_bundled_pair(bundled: tuple[torch.nn.Module, torch.nn.Module], batch: RaggedBatch) -> None:
    target, draft = bundled
    check(eqspec.decode, target, draft if batch.scale >= 0 else None, batch, 1400)
