"""The prefix trie: what it holds agrees with brute force, and its clean contexts with an uncached float64 forward."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
import torch

from specaudit.decoders import bsp, eqspec
from specaudit.faults.random_models import BUILDERS, random_draft, random_model
from specaudit.trace.growth import grow
from specaudit.trace.recorder import Recorder
from specaudit.trace.records import UNKNOWN
from specaudit.trace.trie import NONE, ROOT, FlawKind, PrefixTrie
from tests.checks.batches import audit, random_batch
from tests.variants.catalogue import variant, variants_for

if TYPE_CHECKING:
    from specaudit.trace.records import Step, Trace


def prefixes_by_brute_force(trace: Trace) -> list[set[tuple[int, ...]]]:
    """Return for each write every prefix that it can stand for: all orders of what it sees are tried, in every layer."""
    prefixes: list[set[tuple[int, ...]]] = [set() for _ in trace.writes]
    first = 0
    for step in trace.steps:
        rows, queries = step.input_ids.shape
        for query in range(queries):
            for row in range(rows):
                found = [_extended(trace, prefixes, step, view, row, query) for view in step.views]
                prefixes[first + row * queries + query] = set.intersection(*found)
        first += rows * queries
    return prefixes


def _extended(trace, prefixes, step: Step, view, row: int, query: int) -> set[tuple[int, ...]]:
    own, position = int(view.own_slots[row, query]), int(step.position_ids[row, query])
    token = int(step.input_ids[row, query])
    if own == UNKNOWN or not view.visible[row, query, own]:
        return set()
    seen = [
        set().union(*(prefixes[write] for write in trace.writes_of[content])) if content != UNKNOWN else set()
        for column, content in enumerate(view.contents[row].tolist())
        if view.visible[row, query, column] and column != own
    ]
    if len(seen) != (position if view.window is None else min(position, view.window - 1)):
        return set()
    ends = {prefix for known in seen for prefix in known if len(prefix) == position} if position else {()}
    return {(*end, token) for end in ends if _covers(end, seen)}


def _covers(end: tuple[int, ...], seen: list[set[tuple[int, ...]]]) -> bool:
    needed = [end[:length] for length in range(len(end) - len(seen) + 1, len(end) + 1)]
    options = [[number for number, known in enumerate(seen) if prefix in known] for prefix in needed]
    return _assignable(options, set())


def _assignable(options: list[list[int]], taken: set[int]) -> bool:
    if not options:
        return True
    return any(_assignable(options[1:], {*taken, number}) for number in options[0] if number not in taken)


@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_brute_force(seed: int) -> None:
    """Every prefix that the trie calls read is found by brute force, and the other way round."""
    for case in range(12):
        random = Random(f"{seed}:{case}")
        architecture = random.choice(sorted(BUILDERS))
        name = random.choice((*variants_for(architecture), "generated"))
        batch = random_batch(random, architecture)
        trace = audit(variant(name), batch).trace
        if any(step.obstacles or not step.is_complete for step in trace.steps):
            continue
        trie = grow(trace)
        expected = {prefix for known in prefixes_by_brute_force(trace) for prefix in known}
        assert {tuple(trie.path(node)) for node in trie.readings} == expected


@pytest.mark.parametrize("architecture", sorted(BUILDERS))
@pytest.mark.parametrize("decoder", [eqspec, bsp])
def test_clean_contexts_have_the_logits_of_an_uncached_forward(architecture: str, decoder) -> None:
    """The authority: transformers' own forward over the prefix alone, float64, no cache, no padding."""
    random = Random(architecture)
    model, draft = random_model(architecture), random_draft(architecture, 0.05)
    prompts = [[random.randrange(1, 60) for _ in range(random.randrange(1, 14))] for _ in range(5)]
    with Recorder(model) as recorder:
        decoder.decode(
            model, draft, None, prompts, max_new_tokens=12, draft_tokens=3, eos_token_ids={63}, pad_token_id=0
        )
    trie = grow(recorder.trace)
    assert trie.readings
    for node, readings in trie.readings.items():
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([trie.path(node)]), use_cache=False).logits[0, -1]
        for reading in readings:
            step = recorder.trace.steps[reading.step]
            if reading.top_ids:
                top = step.top_logits[reading.row, reading.query]
                assert top.tolist() == pytest.approx(logits.topk(2).values.tolist(), abs=1e-9)
                assert reading.top_ids == (int(logits.argmax()),)


def test_what_follows_a_flaw_points_to_its_origin() -> None:
    model, draft = random_model("llama"), random_draft("llama", 0.05)
    prompts = [[5, 9, 11, 14, 3], [7, 30]]
    with Recorder(model) as recorder:
        bsp.decode(model, draft, None, prompts, max_new_tokens=12, draft_tokens=3, eos_token_ids={63}, pad_token_id=0)
    flaws = [flaw for flaw in grow(recorder.trace).flaws if flaw is not None]
    assert len(flaws) > 10
    assert {flaw.kind for flaw in flaws} == {FlawKind.POSITION}
    origins = {flaw.moment for flaw in flaws if flaw.row == 1}
    assert min(origins)[0] == 0, "the padded row is wrong from the prefill on"


def test_a_trie_by_hand() -> None:
    trie = PrefixTrie()
    first = trie.add_clean(ROOT, 7)
    second = trie.add_clean(first, 8)
    assert trie.add_clean(ROOT, 7) == first
    assert trie.path(second) == [7, 8]
    assert trie.find([7, 8]) == second
    assert trie.find([8]) is None
    assert trie.depths[second] == 2
    assert NONE not in {first, second}
