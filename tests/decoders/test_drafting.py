"""Drafters propose what a fresh, uncached draft would, whatever was accepted before."""

from __future__ import annotations

from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from specaudit.decoders.drafting import StressDraft, open_session
from specaudit.decoders.rows import start_rows
from specaudit.faults.authority import uncached_greedy
from specaudit.faults.random_models import VOCABULARY, random_model

CPU = torch.device("cpu")


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "mistral"])
def test_a_models_proposals_are_those_of_a_fresh_forward(architecture: str) -> None:
    model, random = random_model(architecture), Random(3)
    prompts = [[random.randrange(VOCABULARY) for _ in range(random.randint(1, 12))] for _ in range(4)]
    rows = start_rows(prompts, budget=99, eos_token_ids=())
    for row in rows:
        row.commit([random.randrange(VOCABULARY)])
    session = open_session(model, pad_token_id=0, device=CPU)
    for _ in range(8):
        count = random.randint(1, 4)
        proposals = session.propose(rows, count).tolist()
        expected = [uncached_greedy(model, row.stream, max_new_tokens=count) for row in rows]
        assert proposals == expected
        for row, proposed in zip(rows, proposals, strict=True):  # accept some, then something else
            row.commit([*proposed[: random.randint(0, count)], random.randrange(VOCABULARY)])
        if len(rows) > 2 and random.random() < 0.3:
            rows.pop(random.randrange(len(rows)))


@given(rate=st.floats(0, 1), seed=st.integers(0, 5), place=st.integers(0, 30))
def test_stress_replaces_with_another_token(rate: float, seed: int, place: int) -> None:
    reference = list(range(20))
    draft = StressDraft({(1, 2): reference}, rate=rate, seed=seed, vocabulary_size=32)
    token = draft.token((1, 2), place)
    assert 0 <= token < 32
    assert token == draft.token((1, 2), place)
    if rate == 0 and place < 20:
        assert token == reference[place]
    if rate == 1 and place < 20:
        assert token != reference[place]


def test_stress_replaces_at_its_rate() -> None:
    reference = [7] * 4000
    draft = StressDraft({(1,): reference}, rate=0.3, seed=0, vocabulary_size=100)
    replaced = sum(draft.token((1,), place) != 7 for place in range(4000))
    assert 1100 < replaced < 1300
