"""Where tokens are placed, against the decoder's own bookkeeping, which the checks never see."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from specaudit.faults.random_models import BUILDERS
from tests.checks.batches import RandomBatch, audit
from tests.checks.faulty import Broken
from tests.variants.catalogue import WINDOWED

if TYPE_CHECKING:
    from specaudit.checks.streams import Stream


def distinct_prompts(random: Random, vocabulary: int, count: int) -> tuple[tuple[int, ...], ...]:
    """Return prompts that differ in their first token, so that a row's own attempts are its own alone."""
    firsts = random.sample(range(vocabulary), count)
    return tuple((first, *(random.randrange(vocabulary) for _ in range(random.randint(0, 8)))) for first in firsts)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_attempts_are_those_of_the_decoder(seed: int, in_place: bool) -> None:
    random = Random(f"{seed}:{in_place}")
    vocabulary = random.choice([4, 8, 64])
    batch = RandomBatch(
        architecture=random.choice([name for name in sorted(BUILDERS) if not in_place or name not in WINDOWED]),
        vocabulary=vocabulary,
        prompts=distinct_prompts(random, vocabulary, random.randint(1, 4)),
        max_new_tokens=random.randint(1, 12),
        draft_tokens=random.randint(1, 5),
        eos=random.randrange(vocabulary),
        pad=random.randrange(vocabulary),
        draft=random.choice(["stress:0", "stress:0.4", "stress:1"]),
    )
    broken = Broken(in_place=in_place)  # with nothing broken
    result = audit(broken.decode, batch)
    assert result.outputs == result.expected
    width = max(map(len, batch.prompts))
    for row, stream in enumerate(result.streams):
        padding = width - stream.prompt_length
        fed = {(0, row, padding + index, index) for index in range(stream.prompt_length)}
        proposed = 0
        for step, known in enumerate(broken.rounds, start=1):
            if not known.running[row]:
                continue
            first = known.lengths[row] - 1
            later = broken.rounds[step].lengths[row] if step < len(broken.rounds) else len(stream.tokens)
            fed |= {(step, row, query, first + query) for query in range(later - first - 1)}
            fed |= {(step, row, 0, first)}
            room = len(stream.tokens) - first - 1
            proposed += min(batch.draft_tokens, room)
        placed = {
            (attempt.step, attempt.row, attempt.query, attempt.stream_index)
            for attempts in stream.attempts[:-1]
            for attempt in attempts
            if attempt.sees_itself and broken_is_running(broken, attempt.step, row)
        }
        last = len(stream.tokens) - 1
        missing = {place for place in fed if place[3] != last} - placed
        assert not missing
        assert stream.proposed_tokens == proposed
        assert stream.accepted_tokens == sum(query > 0 and step > 0 for step, _, query, _ in placed | tail_of(stream))


def tail_of(stream: Stream) -> set[tuple[int, int, int, int]]:
    """Return the attempts at the last token, which only a proposal can be before the output ends."""
    return {
        (attempt.step, attempt.row, attempt.query, attempt.stream_index)
        for attempt in stream.attempts[-1]
        if attempt.query
    }


def broken_is_running(broken: Broken, step: int, row: int) -> bool:
    return step == 0 or broken.rounds[step - 1].running[row]
