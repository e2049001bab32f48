"""Digests and limits of prompt sets."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specaudit.core.errors import InputError, UsageError
from specaudit.core.prompt import Message, Prompt
from specaudit.prompts import PromptSet


def _set(*categories: str | None) -> PromptSet:
    prompts = [
        Prompt(prompt_id=str(place), text=f"text {place}", category=category, source=f"set:{place}")
        for place, category in enumerate(categories)
    ]
    return PromptSet(name="set", prompts=tuple(prompts))


def _ids(prompts: PromptSet) -> list[int]:
    return [int(prompt.prompt_id) for prompt in prompts.prompts]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(1, [0]), (2, [0, 3]), (3, [0, 3, 4]), (4, [0, 1, 3, 4]), (5, [0, 1, 3, 4, 5]), (9, [0, 1, 2, 3, 4, 5])],
)
def test_categories_take_turns(limit: int, expected: list[int]) -> None:
    assert _ids(_set("a", "a", "a", "b", "c", "b").limited(limit)) == expected


def test_without_categories_the_first_are_taken() -> None:
    assert _ids(_set(None, None, None).limited(2)) == [0, 1]


@given(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=30), st.integers(1, 40))
def test_a_limit_is_even_ordered_and_nested(categories: list[str | None], limit: int) -> None:
    whole = _set(*categories)
    chosen = _ids(whole.limited(limit))
    assert len(chosen) == min(limit, len(categories))
    assert chosen == sorted(chosen)
    assert set(chosen) <= set(_ids(whole.limited(limit + 1)))
    taken, available = Counter(categories[place] for place in chosen), Counter(categories)
    most = max(taken.values())
    assert all(taken[category] >= min(available[category], most - 1) for category in available)


@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    with pytest.raises(UsageError):
        _set("a").limited(limit)


def test_a_sample_is_the_same_on_every_platform() -> None:
    whole = _set(*"abcdefghijkl")
    assert _ids(whole.sampled(4, seed=0)) == [2, 3, 5, 7]
    assert _ids(whole.sampled(4, seed=1)) == [0, 3, 8, 9]


@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 2**64))
def test_a_sample_is_ordered_nested_and_repeatable(size: int, count: int, seed: int) -> None:
    whole = _set(*[None] * size)
    chosen = _ids(whole.sampled(count, seed=seed))
    assert len(chosen) == min(count, size)
    assert chosen == sorted(chosen)
    assert set(chosen) <= set(_ids(whole.sampled(count + 1, seed=seed)))
    assert chosen == _ids(whole.sampled(count, seed=seed))


def test_seeds_draw_evenly() -> None:
    drawn = Counter(place for seed in range(2000) for place in _ids(_set(*"aaaabb").sampled(2, seed=seed)))
    assert all(570 < drawn[place] < 770 for place in range(6))  # 667 expected, five standard deviations of 21


@pytest.mark.parametrize("count", [0, -1])
def test_a_sample_below_one_is_refused(count: int) -> None:
    with pytest.raises(UsageError):
        _set("a").sampled(count, seed=0)


def test_categories_are_kept_in_the_order_of_the_source() -> None:
    whole = _set("a", "b", None, "a", "c")
    assert _ids(whole.in_categories(["c", "a"])) == [0, 3, 4]


def test_an_unknown_category_is_named_with_the_nearest_and_all() -> None:
    whole = _set("writing", "coding", "coding", None)
    with pytest.raises(UsageError, match="category 'codng'") as caught:
        whole.in_categories(["writing", "codng"])
    assert caught.value.way_out == "did you mean 'coding'? known: writing (1), coding (2)"
    with pytest.raises(UsageError) as caught:
        whole.in_categories(["x"])
    assert caught.value.way_out == "known: writing (1), coding (2)"
    with pytest.raises(UsageError, match="no categories"):
        _set(None).in_categories(["x"])


def test_the_digest_is_of_ids_contents_and_order() -> None:
    one = _set("a", "b")
    first, second = one.prompts
    assert replace(one, name="other").digest == one.digest
    assert replace(one, prompts=(replace(first, category="z", source="elsewhere"), second)).digest == one.digest
    assert replace(one, prompts=(replace(first, gold="g"), second)).digest == one.digest
    assert one.digest == "02aadbb8a43bfbfb28242ec64da219fb18ecef8b180badf69033221108dc9939"
    different = [
        (second, first),
        (first,),
        (replace(first, text="text  0"), second),
        (replace(first, prompt_id="x"), second),
        (replace(first, follow_up="And then?"), second),
        (replace(first, text=None, messages=(Message(role="user", content="text 0"),)), second),
    ]
    digests = {replace(one, prompts=prompts).digest for prompts in different}
    assert len(digests) == len(different)
    assert one.digest not in digests


def test_an_empty_set_is_refused() -> None:
    with pytest.raises(InputError, match="empty"):
        PromptSet(name="set", prompts=())


def test_chats_can_be_left_out() -> None:
    texts = _set("a", "b")
    chat = Prompt(prompt_id="c", messages=(Message(role="user", content="hi"),), source="set:3")
    assert replace(texts, prompts=(*texts.prompts, chat)).without_chats() == texts
    with pytest.raises(InputError, match="empty"):
        replace(texts, prompts=(chat,)).without_chats()
