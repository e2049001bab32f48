"""A key-value cache whose slots can be cropped and moved, over the cache classes of transformers 4.51 to 5.x."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import DynamicCache

if TYPE_CHECKING:
    from collections.abc import Callable

    from transformers import PreTrainedModel


@cache
def _arguments_of(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(signature(function).parameters)


def accepted_arguments(model: PreTrainedModel) -> frozenset[str]:
    """Return the argument names of the model's forward."""
    return _arguments_of(type(model).forward)


class SlotCache:
    """The cache of a left-padded batch: every layer keeps every slot, windows are left to the mask.

    A cache that drops slots behind a window cannot be realigned, so the plain dynamic cache is used for every
    architecture; transformers builds the window mask from its full length.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        """Make an empty cache for `model`."""
        self.cache: Any = DynamicCache()
        arguments = accepted_arguments(model)
        self.argument = "cache" if "cache" in arguments else "past_key_values"

    @property
    def width(self) -> int:
        """Return the number of slots, padding included."""
        return int(self.cache.get_seq_length())

    @property
    def bytes_per_slot(self) -> int:
        """Return the bytes that keys and values of one slot of one row take in all layers; 0 while it is empty."""
        states = self._states()
        return sum(each[0, :, 0].numel() * each.element_size() for each in states if each.numel())

    @property
    def layers(self) -> list[tuple[Tensor, Tensor]]:
        """Return the keys and values of each layer that has its own, [B, heads, n, width] each."""
        states = self._states()
        return list(zip(states[0::2], states[1::2], strict=True))

    def set_layer(self, place: int, keys: Tensor, values: Tensor) -> None:
        """Put other keys and values into the layer at a place of `layers`."""
        if hasattr(self.cache, "layers"):
            layer = [layer for layer in self.cache.layers if layer.keys is not None][place]
            layer.keys, layer.values = keys, values
        else:
            self.cache.key_cache[place], self.cache.value_cache[place] = keys, values

    def placement(self, count: int) -> dict[str, Any]:
        """Return what a forward of `count` tokens has to be told of where they go, besides the cache itself."""
        return {}

    def crop(self, width: int) -> None:
        """Keep the first `width` slots of every row; no slot moves."""
        if width < self.width:
            self._replace(lambda states: states[:, :, :width])

    def gather(self, slots: Tensor, rows: Tensor) -> None:
        """Rebuild the cache so that row b, slot t holds what row `rows[b]`, slot `slots[b, t]` held.

        `slots` is int64 [B', n], `rows` int64 [B']. One gather a layer and tensor.
        """
        self._replace(lambda states: states[rows[:, None], :, slots].transpose(1, 2).contiguous())

    def _states(self) -> list[Tensor]:
        if hasattr(self.cache, "layers"):
            filled = [layer for layer in self.cache.layers if layer.keys is not None]
            return [each for layer in filled for each in (layer.keys, layer.values)]
        pairs = zip(self.cache.key_cache, self.cache.value_cache, strict=True)
        return [each for pair in pairs for each in pair]

    def _replace(self, change: Callable[[Tensor], Tensor]) -> None:
        if hasattr(self.cache, "layers"):
            for layer in self.cache.layers:
                if layer.keys is not None:  # layers that share another's cache stay empty
                    layer.keys, layer.values = change(layer.keys), change(layer.values)
        else:  # transformers before 4.54 keeps two lists
            self.cache.key_cache = [change(states) for states in self.cache.key_cache]
            self.cache.value_cache = [change(states) for states in self.cache.value_cache]


@dataclass(frozen=True, slots=True)
class Feeder:
    """Feeds blocks of tokens to a model through its cache, with mask and positions stated explicitly."""

    model: PreTrainedModel
    """The model, in eval mode."""

    cache: SlotCache
    """Its cache; the fed tokens are appended to it."""

    def feed(self, input_ids: Tensor, *, attention_mask: Tensor | None, position_ids: Tensor | None) -> Tensor:
        """Run one forward and return its logits [B, q, vocabulary].

        `input_ids` is int64 [B, q], `attention_mask` int64 [B, cache width + q] or None, `position_ids` int64 [B, q]
        or None. None is passed on as absence: the model then fills in its own default.
        """
        arguments: dict[str, Any] = {"input_ids": input_ids, "use_cache": True, self.cache.argument: self.cache.cache}
        arguments.update(self.cache.placement(input_ids.shape[1]))
        if attention_mask is not None:
            arguments["attention_mask"] = attention_mask
        if position_ids is not None and "position_ids" in accepted_arguments(self.model):
            arguments["position_ids"] = position_ids
        logits: Tensor = self.model(**arguments).logits
        return logits


def realigned_slots(lengths: Tensor, kept: Tensor, *, width: int) -> Tensor | None:
    """Say which slots a left-padded cache must read from so that each row's first `kept[b]` tokens end flush right.

    `lengths` and `kept` are int64 [B]: tokens that row b has in the cache now (its padding is `width` - lengths[b]) and
    tokens to keep of them. Returns int64 [B, max kept], or None when no row's padding changes: then cropping to the
    widest row is enough. What a row's padding reads is of no account: the mask hides it.
    """
    new_width = int(kept.max())
    padding, new_padding = width - lengths, new_width - kept
    if bool((padding == new_padding).all()):
        return None
    columns = torch.arange(new_width, device=lengths.device)
    return (columns + (padding - new_padding)[:, None]).clamp(min=0)
