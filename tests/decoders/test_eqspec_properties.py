"""EQSPEC against an uncached float64 forward: random ragged batches on four architectures.

Both sides compute in float64, so that rounding excuses nothing. Every batch is traced: RECT and POS must hold as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specaudit.checks.judgement import judge
from specaudit.checks.streams import trace_streams
from specaudit.core.vocabulary import Sync
from specaudit.decoders import eqspec
from specaudit.decoders.drafting import StressDraft
from specaudit.models.loading import load_pair
from specaudit.models.options import LoadOptions
from specaudit.trace.recorder import Recorder
from tests.authority import uncached_greedy, until_eos
from tests.random_models import VOCABULARY, random_draft, random_model

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class RaggedBatch:
    """One call of a decoder."""

    prompts: list[list[int]]
    draft_tokens: int
    max_new_tokens: int
    eos_row: int
    eos_place: int
    eos_in_prompt: bool
    pad_is_eos: bool
    scale: float
    """Noise of the draft, or a stress rate when negative."""


def ragged_batches(vocabulary: int) -> st.SearchStrategy[RaggedBatch]:
    """Return batches of 1 to 8 prompts of 1 to 14 tokens, K from 1 to 8."""
    prompt = st.lists(st.integers(0, vocabulary - 1), min_size=1, max_size=14)
    return st.builds(
        RaggedBatch,
        prompts=st.lists(prompt, min_size=1, max_size=8),
        draft_tokens=st.integers(1, 8),
        max_new_tokens=st.integers(1, 20),
        eos_row=st.integers(0, 7),
        eos_place=st.integers(0, 24),
        eos_in_prompt=st.booleans(),
        pad_is_eos=st.booleans(),
        scale=st.sampled_from([0.0, 0.02, 0.05, 0.1, -0.0001, -0.2, -0.5, -1.0]),
    )


def check(model: torch.nn.Module, draft: torch.nn.Module | None, batch: RaggedBatch, vocabulary: int) -> None:
    """Decode a batch, compare it with the authority, judge its trace."""
    prompts = batch.prompts
    truth = [uncached_greedy(model, prompt, max_new_tokens=batch.max_new_tokens) for prompt in prompts]
    row = truth[batch.eos_row % len(truth)]
    eos = row[batch.eos_place] if batch.eos_place < len(row) else vocabulary - 1
    if batch.eos_in_prompt and prompts[0][:-1]:
        prompts = [[eos, *prompts[0][1:]], *prompts[1:]]
        truth[0] = uncached_greedy(model, prompts[0], max_new_tokens=batch.max_new_tokens)
    expected = [until_eos(tokens, {eos}) for tokens in truth]
    references = {tuple(prompt): output for prompt, output in zip(prompts, expected, strict=True)}
    drafter = draft or StressDraft(references, rate=-batch.scale, seed=7, vocabulary_size=vocabulary)
    with Recorder(model) as recorder:
        outputs = eqspec.decode(
            model,
            drafter,
            None,
            [list(prompt) for prompt in prompts],
            max_new_tokens=batch.max_new_tokens,
            draft_tokens=batch.draft_tokens,
            eos_token_ids={eos},
            pad_token_id=eos if batch.pad_is_eos else 0,
        )
    assert outputs == expected
    for stream in trace_streams(recorder.trace, prompts, outputs):
        judgement = judge(recorder.trace, stream)
        assert judgement.sync is Sync.CLEAN, (judgement.reason, judgement.findings)


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "mistral", "gemma3"])
@settings(max_examples=130)
@given(batch=ragged_batches(VOCABULARY))
def test_random_models(architecture: str, batch: RaggedBatch) -> None:
    model = random_model(architecture)
    draft = random_draft(architecture, batch.scale) if batch.scale >= 0 else None
    check(model, draft, batch, VOCABULARY)


@pytest.fixture(scope="module")
def bundled() -> tuple[torch.nn.Module, torch.nn.Module]:
    pair = load_pair("bundled:llama", None, options=LoadOptions(dtype="float64", device="cpu"))
    return pair.target.model, pair.draft.model


@settings(max_examples=40)
@given(batch=ragged_batches(1400))
def test_bundled_pair(bundled: tuple[torch.nn.Module, torch.nn.Module], batch: RaggedBatch) -> None:
    target, draft = bundled
    check(target, draft if batch.scale >= 0 else None, batch, 1400)
