"""What cannot be seen is unobserved, with a plain reason: never clean, never violated."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from specaudit.batch.cache import accepted_arguments
from specaudit.core.vocabulary import Sync
from specaudit.faults.legal import plain_loop
from specaudit.faults.random_models import BYPASSING_BUILDERS, random_model
from tests.checks.batches import RandomBatch, audit
from tests.variants import no_cache

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH = RandomBatch(
    architecture="llama",
    vocabulary=64,
    prompts=((5, 9, 11, 14), (7, 30, 2)),
    max_new_tokens=6,
    draft_tokens=2,
    eos=63,
    pad=0,
    draft="stress:0.5",
)


def assert_unobserved(decode: Callable[..., Any], reason: str, batch: RandomBatch = BATCH) -> None:
    result = audit(decode, batch)
    for judgement in result.judgements:
        assert judgement.sync is Sync.UNOBSERVED, judgement
        assert judgement.findings == ()
        assert reason in (judgement.reason or ""), judgement.reason


@pytest.mark.parametrize(
    ("architecture", "reason"),
    [
        ("bloom", "uses its positions where no tap reaches"),
        ("falcon", "was not seen in 3 of 3 layers: this architecture cannot be observed yet"),
    ],
)
def test_architectures_that_bypass_the_registry(architecture: str, reason: str) -> None:
    assert architecture in BYPASSING_BUILDERS
    assert_unobserved(
        _loop(lambda target, ids, cache: {"input_ids": ids}), reason, replace(BATCH, architecture=architecture)
    )


def test_embeddings_fed_instead_of_ids() -> None:
    def embedded(target: Any, ids: torch.Tensor, cache: Any) -> dict[str, Any]:
        return {"inputs_embeds": target.get_input_embeddings()(ids)}

    assert_unobserved(_loop(embedded), "inputs_embeds")


def test_attention_implementation_changed_by_the_decoder() -> None:
    def decode(target: Any, *arguments: Any, **options: Any) -> Any:
        target.set_attn_implementation("eager")
        try:
            return no_cache.decode(target, *arguments, **options)
        finally:
            target.set_attn_implementation("sdpa")

    assert_unobserved(decode, "changed from 'sdpa' to 'eager'")


def test_cache_of_an_unknown_class() -> None:
    """The first forward could be seen; where later ones keep their keys could not."""
    assert_unobserved(_loop(lambda target, ids, cache: {"input_ids": ids}, make_cache=OwnCache), "where no tap sees it")


def test_another_model_than_the_target() -> None:
    twin = copy.deepcopy(random_model("llama"))

    def decode(target: Any, *arguments: Any, **options: Any) -> Any:
        return plain_loop.decode(twin, *arguments, **options)

    assert_unobserved(decode, "no forward of the target was seen")


def test_mask_that_weighs_slots() -> None:
    def weighing(target: Any, ids: torch.Tensor, cache: Any) -> dict[str, Any]:
        width = cache.get_seq_length() + ids.shape[1]
        mask = torch.zeros(1, 1, ids.shape[1], width, dtype=torch.float64)
        mask[..., 0] = -1.0
        return {"input_ids": ids, "attention_mask": mask}

    assert_unobserved(_loop(weighing), "weighs slots")


def test_cache_that_changes_what_is_written() -> None:
    from transformers import DynamicCache

    class Rounding(DynamicCache):
        def update(self, keys: torch.Tensor, values: torch.Tensor, *arguments: Any, **options: Any) -> Any:
            return super().update(keys.float().double(), values.float().double(), *arguments, **options)

    assert_unobserved(
        _loop(lambda target, ids, cache: {"input_ids": ids}, make_cache=Rounding), "does not hold the bits"
    )


def test_fewer_layers_are_no_step_of_the_target() -> None:
    """A draft that leaves layers of the target out is not taken for it."""

    def decode(target: Any, *arguments: Any, **options: Any) -> Any:
        body = target.model
        layers = body.layers
        body.layers = layers[:2]
        body.config.num_hidden_layers = 2
        try:
            return no_cache.decode(target, *arguments, **options)
        finally:
            body.layers = layers
            body.config.num_hidden_layers = 3

    assert_unobserved(decode, "no forward went through all attention layers")


class OwnCache:
    """Not one of transformers' caches: keeps a list of keys and values."""

    is_compileable = False

    def __init__(self) -> None:
        self.states: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def update(self, keys: torch.Tensor, values: torch.Tensor, layer: int, *arguments: Any, **options: Any) -> Any:
        if layer in self.states:
            before = self.states[layer]
            keys, values = torch.cat([before[0], keys], dim=2), torch.cat([before[1], values], dim=2)
        self.states[layer] = keys, values
        return keys, values

    def get_seq_length(self, layer: int = 0) -> int:
        return self.states[layer][0].shape[2] if layer in self.states else 0

    def get_query_offset(self, layer: int = 0) -> int:
        return self.get_seq_length(layer)

    def get_mask_sizes(self, fed: Any, layer: int = 0) -> tuple[int, int]:
        return self.get_seq_length(layer) + (fed if isinstance(fed, int) else len(fed)), 0


def _loop(arguments_of: Callable[..., dict[str, Any]], make_cache: Any = None) -> Callable[..., Any]:
    """Return a batch-1 greedy loop whose forwards get what `arguments_of` makes of the ids."""

    @torch.no_grad()
    def decode(
        target: Any, draft: Any, tokenizer: Any, prompts: list[list[int]], *, max_new_tokens: int, **options: Any
    ):
        from transformers import DynamicCache

        outputs = []
        for prompt in prompts:
            cache, block, output = (make_cache or DynamicCache)(), prompt, []
            name = "cache" if "cache" in accepted_arguments(target) else "past_key_values"
            for _ in range(max_new_tokens):
                arguments = arguments_of(target, torch.tensor([block]), cache)
                output.append(int(target(**arguments, **{name: cache}, use_cache=True).logits[0, -1].argmax()))
                block = output[-1:]
            outputs.append(output)
        return outputs

    return decode
