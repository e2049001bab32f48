"""Random calls of a decoder, and what must be true of each: the authority's outputs, and a clean trace.

Both sides compute in float64, so that rounding excuses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from specaudit.checks.judgement import judge
from specaudit.checks.streams import trace_streams
from specaudit.core.vocabulary import Sync
from specaudit.decoders.drafting import StressDraft
from specaudit.faults.authority import uncached_greedy, until_eos
from specaudit.trace.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

SCALES = [0.0, 0.02, 0.05, 0.1, -0.0001, -0.2, -0.5, -1.0]


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


def ragged_batches(
    vocabulary: int, *, largest: int = 8, scales: list[float] | None = None
) -> st.SearchStrategy[RaggedBatch]:
    """Return batches of 1 to `largest` prompts of 1 to 14 tokens, K from 1 to 8."""
    prompt = st.lists(st.integers(0, vocabulary - 1), min_size=1, max_size=14)
    return st.builds(
        RaggedBatch,
        prompts=st.lists(prompt, min_size=1, max_size=largest),
        draft_tokens=st.integers(1, 8),
        max_new_tokens=st.integers(1, 20),
        eos_row=st.integers(0, 7),
        eos_place=st.integers(0, 24),
        eos_in_prompt=st.booleans(),
        pad_is_eos=st.booleans(),
        scale=st.sampled_from(SCALES if scales is None else scales),
    )


def check(
    decode: Callable[..., list[list[int]]],
    model: torch.nn.Module,
    draft: torch.nn.Module | None,
    batch: RaggedBatch,
    vocabulary: int,
) -> None:
    """Decode a batch, compare it with the authority, judge its trace; without a draft it is drafted by stress."""
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
        outputs = decode(
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
    for judgement in judge(recorder.trace, trace_streams(recorder.trace, prompts, outputs)):
        assert judgement.sync is Sync.CERTIFIED, (judgement.reason, judgement.findings)
