"""The tap on cache writes: what a layer stores in a step, whatever the class of the cache."""

from __future__ import annotations

from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol

from transformers.cache_utils import Cache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor


class WriteListener(Protocol):
    """Called with the keys and values that a layer stores."""

    def __call__(self, cache: Cache, layer: int, keys: Tensor, values: Tensor) -> None:
        """`keys` and `values` are [B, heads, q, width]."""
        ...


@contextmanager
def cache_writes_tapped(listener: WriteListener) -> Iterator[None]:
    """Let `listener` see every outermost `Cache.update` while the block runs."""
    depth = 0

    def tapped(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def update(
            self: Cache, key_states: Tensor, value_states: Tensor, layer_idx: int, *arguments: Any, **options: Any
        ) -> Any:
            nonlocal depth
            if depth == 0:
                listener(self, layer_idx, key_states, value_states)
            depth += 1
            try:
                return original(self, key_states, value_states, layer_idx, *arguments, **options)
            finally:
                depth -= 1

        return update

    originals = {cls: cls.__dict__["update"] for cls in _with_subclasses(Cache) if "update" in cls.__dict__}
    for cls, original in originals.items():
        cls.update = tapped(original)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for cls, original in originals.items():
            cls.update = original  # type: ignore[method-assign]


def _with_subclasses(cls: type[Cache]) -> set[type[Cache]]:
    return {cls}.union(*(_with_subclasses(sub) for sub in cls.__subclasses__()))
