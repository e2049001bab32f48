"""A cache of a size set beforehand: slots beyond those in use exist, hold zeros and are masked."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

import torch
from transformers import StaticCache

from specaudit.batch.cache import SlotCache, accepted_arguments

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class StaticSlotCache(SlotCache):
    """Slots are filled in order and never move."""

    def __init__(self, model: PreTrainedModel, *, rows: int, size: int) -> None:
        """Make an empty cache of `size` slots in each of `rows` rows, for a model without windows."""
        super().__init__(model)
        options: dict[str, Any] = {"config": model.config, "max_cache_len": size}
        if "max_batch_size" in signature(StaticCache.__init__).parameters:  # transformers before 4.56 fills it at once
            options |= {"max_batch_size": rows, "device": model.device, "dtype": model.dtype}
        self.cache = StaticCache(**options)
        self._device = model.device
        self._takes_places = "cache_position" in accepted_arguments(model)
        self._used = 0

    @property
    def width(self) -> int:
        """Return the number of slots in use."""
        return self._used

    def placement(self, count: int) -> dict[str, Any]:
        """Return the slots that the next `count` tokens go to; transformers before 5 has to be told."""
        first, self._used = self._used, self._used + count
        return {"cache_position": torch.arange(first, self._used, device=self._device)} if self._takes_places else {}
