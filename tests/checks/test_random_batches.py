"""A seeded slice of the campaign against the placement of tokens: ragged batches in which coincidences abound.

Vocabularies of 4 to 8 tokens, equal prompts, prompts that begin others, drafts that are right by accident, outputs in
which every token is equal. Whatever the variant, a correct decoder is clean.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from specaudit.core.vocabulary import Sync
from specaudit.faults.random_models import BUILDERS
from tests.checks.batches import RandomBatch, audit, random_batch
from tests.variants.catalogue import variant, variants_for

SLICES, CASES = 10, 60


@pytest.mark.parametrize("part", range(SLICES))
def test_campaign(part: int) -> None:
    for case in range(CASES):
        random = Random(f"{part}:{case}")
        architecture = random.choice(sorted(BUILDERS))
        name = random.choice((*variants_for(architecture), "generated", "generated_static"))
        assert_clean(name, random_batch(random, architecture))


def assert_clean(name: str, batch: RandomBatch) -> None:
    result = audit(variant(name), batch)
    assert result.outputs == result.expected, (name, batch)
    for judgement in result.judgements:
        assert judgement.sync is Sync.CERTIFIED, (name, batch, judgement.reason, judgement.findings)


PLAIN = RandomBatch(
    architecture="llama",
    vocabulary=64,
    prompts=((0,),),
    max_new_tokens=9,
    draft_tokens=2,
    eos=2,
    pad=0,
    draft="stress:1",
)

FOUND = {
    "unrolled zeros: a pad embedding of zeros looks like unwritten static slots": (
        "static_cache",
        replace(PLAIN, architecture="glm4", vocabulary=5, prompts=((0, 0, 0), (0,), (0, 0, 0), (2, 2, 0, 2), (0, 2)),
                max_new_tokens=14, eos=3, pad=2, draft="noisy:0.05"),
    ),
    "one content in every slot": (
        "generated_static",
        replace(PLAIN, architecture="gemma3", vocabulary=8, prompts=((0, 0),), draft_tokens=1, eos=1, pad=3),
    ),
    "masked filling with the bits of a visible slot": (
        "ragged_drafts",
        replace(PLAIN, vocabulary=5, prompts=((0, 0), (0, 0), (0, 0), (0,), (1, 0, 3, 1)), max_new_tokens=2,
                draft_tokens=4, eos=4),
    ),
    "first forward feeds a prompt of equal tokens and equal drafts": (
        "prompt_with_drafts",
        replace(PLAIN, architecture="glm4", prompts=((7, 7, 25, 7, 24), (6,), (6, 6, 6)), max_new_tokens=5,
                draft_tokens=3, eos=59, pad=25),
    ),
    "equal prompts decoded once": (
        "distinct_prompts",
        replace(PLAIN, architecture="mistral", prompts=((14, 14, 14), (14, 14, 14), (14, 14), (14,)), max_new_tokens=2,
                eos=43, pad=27, draft="stress:0.7"),
    ),
    "rows told apart only by tokens fed later": (
        "prefill_one_by_one",
        replace(PLAIN, architecture="gpt_neox", vocabulary=5, prompts=((0, 0), (0, 0), (0,)), max_new_tokens=14,
                draft_tokens=1, eos=4, pad=1, draft="noisy:0.05"),
    ),
    "the target drafts for itself": (
        "batch_minimum",
        replace(PLAIN, vocabulary=5, prompts=((0,), (0,)), max_new_tokens=14, draft_tokens=1, eos=1, draft="self"),
    ),
    "second forward behind a rejected draft, window full, row moved up": (
        "several_forwards",
        replace(PLAIN, architecture="mistral", vocabulary=4, prompts=((1, 1), (1, 1, 3), (1, 1, 3, 1), (1,), (1, 1)),
                draft_tokens=5, pad=1, draft="noisy:0.5"),
    ),
    "a finished row is fed the prompt of another": (
        "explicit_masks",
        replace(PLAIN, architecture="opt", vocabulary=8, prompts=((4, 7), (1,), (1,), (1,)), draft_tokens=4, eos=7,
                pad=7, draft="noisy:0.05"),
    ),
    "warm-up with a prompt that begins another": (
        "warmed_up",
        replace(PLAIN, architecture="gemma3", vocabulary=5, draft_tokens=3, eos=1, pad=3, draft="stress:0.7",
                prompts=((4, 2, 3, 0, 2, 1), (1, 0, 1, 3, 1, 4, 0, 4, 1, 4, 0), (4, 2), (1, 0, 1, 3, 1, 4, 0))),
    ),
    "a finished row is fed what its twin's prompt begins with, among slots of rejected drafts": (
        "sorted_rows",
        replace(PLAIN, architecture="glm4", vocabulary=4, prompts=((1,), (1, 3), (1,), (3, 3), (0, 0)),
                max_new_tokens=5, draft_tokens=5, eos=3, pad=2, draft="noisy:0.05"),
    ),
    "a finished row goes on choosing EOS, the whole output of its neighbours": (
        "explicit_masks",
        replace(PLAIN, architecture="glm4", vocabulary=4, prompts=((0, 0), (1, 0), (1,), (0, 1), (1, 0)),
                draft_tokens=5, eos=1, draft="noisy:0.5"),
    ),
    "a warm-up slot with the bits of a sound one": (
        "warmed_up",
        replace(PLAIN, architecture="gemma3", prompts=((3, 0, 0, 3, 0, 3), (3, 0, 0, 3, 0, 0, 3)), max_new_tokens=1,
                draft_tokens=1, eos=23, draft="stress:0.3"),
    ),
    "a prompt that begins another, in chunks, among finished rows": (
        "chunked_prefill",
        replace(PLAIN, architecture="gpt_neox", vocabulary=8, max_new_tokens=5, draft_tokens=5, eos=6, pad=1,
                prompts=((7, 1, 6), (1, 6, 7, 1, 6, 6, 6), (1, 6, 7), (7, 1), (1, 6, 7)), draft="stress:0.3"),
    ),
}  # fmt: skip
"""What the campaign found, by what was misread; each was a false alarm or a false `unobserved` once."""


@pytest.mark.parametrize("found", sorted(FOUND))
def test_found_by_the_campaign(found: str) -> None:
    assert_clean(*FOUND[found])
