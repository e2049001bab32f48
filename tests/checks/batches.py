"""Random ragged batches in which coincidences abound, and their audit against the authority."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from specaudit.checks.judgement import Judgement, judge
from specaudit.checks.streams import Stream, trace_streams
from specaudit.decoders.drafting import StressDraft
from specaudit.faults.authority import uncached_greedy, until_eos
from specaudit.faults.random_models import random_draft, random_model
from specaudit.trace.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from specaudit.trace.records import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomBatch:
    """One decoder call on a random model."""

    architecture: str
    vocabulary: int
    prompts: tuple[tuple[int, ...], ...]
    max_new_tokens: int
    draft_tokens: int
    eos: int
    pad: int
    draft: str
    """`stress:RATE`, `noisy:SCALE`, or `self`: the target itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """A decoder call, what it should have returned, and what the checks say."""

    outputs: list[list[int]]
    expected: list[list[int]]
    trace: Trace
    streams: tuple[Stream, ...]
    judgements: list[Judgement]


def random_batch(random: Random, architecture: str, *, vocabularies: tuple[int, ...] = (4, 5, 8, 64)) -> RandomBatch:
    """Return a batch of 1 to 5 prompts, with equal ones, prefixes of others and prompts of one token among them."""
    vocabulary = random.choice(vocabularies)
    alphabet = random.sample(range(vocabulary), random.randint(1, min(vocabulary, 5)))
    longest = random.choice([2, 4, 7, 12])
    prompts: list[tuple[int, ...]] = []
    for _ in range(random.randint(1, 5)):
        kind = random.random()
        if prompts and kind < 0.2:
            prompts.append(random.choice(prompts))
        elif prompts and kind < 0.4:
            chosen = random.choice(prompts)
            prompts.append(chosen[: random.randint(1, len(chosen))])
        elif prompts and kind < 0.5:
            prompts.append((*random.choice(prompts), random.choice(alphabet)))
        else:
            prompts.append(tuple(random.choice(alphabet) for _ in range(random.randint(1, longest))))
    drafts = ["stress:0", "stress:0.3", "stress:0.7", "stress:1", "noisy:0.05", "noisy:0.5", "self"]
    return RandomBatch(
        architecture=architecture,
        vocabulary=vocabulary,
        prompts=tuple(prompts),
        max_new_tokens=random.choice([1, 2, 5, 9, 14]),
        draft_tokens=random.randint(1, 5),
        eos=random.randrange(vocabulary),
        pad=random.choice([*alphabet, random.randrange(vocabulary)]),
        draft=random.choice(drafts),
    )


@cache
def _truth(architecture: str, vocabulary: int, prompt: tuple[int, ...], max_new_tokens: int) -> tuple[int, ...]:
    model = random_model(architecture, vocabulary=vocabulary)
    return tuple(uncached_greedy(model, prompt, max_new_tokens=max_new_tokens))


def audit(decode: Callable[..., Any], batch: RandomBatch, **options: Any) -> Audited:
    """Run a decoder on a batch, traced; `options` go to the decoder."""
    model = random_model(batch.architecture, vocabulary=batch.vocabulary)
    expected = [
        until_eos(_truth(batch.architecture, batch.vocabulary, prompt, batch.max_new_tokens), {batch.eos})
        for prompt in batch.prompts
    ]
    with Recorder(model) as recorder:
        outputs = decode(
            model,
            make_draft(batch, expected),
            None,
            [list(prompt) for prompt in batch.prompts],
            max_new_tokens=batch.max_new_tokens,
            draft_tokens=batch.draft_tokens,
            eos_token_ids={batch.eos},
            pad_token_id=batch.pad,
            **options,
        )
    streams = trace_streams(recorder.trace, batch.prompts, outputs)
    return Audited(
        outputs=outputs,
        expected=expected,
        trace=recorder.trace,
        streams=streams,
        judgements=judge(recorder.trace, streams),
    )


def make_draft(batch: RandomBatch, expected: list[list[int]]) -> Any:
    """Return the batch's draft, a drafter or a model."""
    kind, _, value = batch.draft.partition(":")
    if kind == "self":
        return random_model(batch.architecture, vocabulary=batch.vocabulary)
    if kind == "noisy":
        return random_draft(batch.architecture, float(value), vocabulary=batch.vocabulary)
    references = dict(zip(batch.prompts, expected, strict=True))
    return StressDraft(references, rate=float(value), seed=7, vocabulary_size=batch.vocabulary)
