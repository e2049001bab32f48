"""The tap on attention: the function in transformers' registry, replaced under its own key and put back.

No configuration changes and the replacement calls the original with the same arguments, so logits keep every bit. Calls
are told apart by the attention module that makes them: a draft may share modules, configuration or process.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from transformers.modeling_utils import AttentionInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, MutableMapping, Sequence

    from torch import Tensor, nn


class AttentionListener(Protocol):
    """Called with what attention is about to consume."""

    def __call__(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool
    ) -> None:
        """`query`, `key` and `value` are [B, heads, q or n, width]; `mask` is what the backend gets."""
        ...


@contextmanager
def attention_tapped(modules: Sequence[nn.Module], implementation: str, listener: AttentionListener) -> Iterator[None]:
    """Let `listener` see every attention call of `modules` while the block runs."""
    mine = {id(module) for module in modules}
    with _all_replaced(_mappings(modules, implementation), implementation, mine, listener):
        yield


@contextmanager
def _all_replaced(
    mappings: Sequence[MutableMapping[str, Callable[..., Any]]],
    implementation: str,
    mine: set[int],
    listener: AttentionListener,
) -> Iterator[None]:
    originals = [mapping.get(implementation) for mapping in mappings]
    for mapping, original in zip(mappings, originals, strict=True):
        mapping[implementation] = _tapped(original, mine, listener)
    try:
        yield
    finally:
        for mapping, original in zip(mappings, originals, strict=True):
            if original is None:
                del mapping[implementation]
            else:
                mapping[implementation] = original


def _tapped(original: Callable[..., Any] | None, mine: set[int], listener: AttentionListener) -> Callable[..., Any]:
    def attention(
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        *arguments: Any,
        **options: Any,
    ) -> Any:
        if id(module) in mine:
            causal = options.get("is_causal")
            is_causal = bool(getattr(module, "is_causal", True) if causal is None else causal)
            listener(module, query, key, value, attention_mask, is_causal)
        function = original or _own_eager_attention(module)
        return function(module, query, key, value, attention_mask, *arguments, **options)

    return attention


def goes_through_registry(module: nn.Module) -> bool:
    """Return whether the file that defines an attention module looks its function up in transformers' registry."""
    return hasattr(sys.modules[type(module).__module__], "ALL_ATTENTION_FUNCTIONS")


def _own_eager_attention(module: nn.Module) -> Callable[..., Any]:
    """Return the eager attention of the file that defines the module: it has no entry in the registry."""
    function: Callable[..., Any] = sys.modules[type(module).__module__].eager_attention_forward
    return function


def _mappings(modules: Sequence[nn.Module], implementation: str) -> list[MutableMapping[str, Callable[..., Any]]]:
    """Return the tables in which `modules` find their attention: a file's own one where it overrides the common one."""
    tables: dict[int, MutableMapping[str, Callable[..., Any]]] = {}
    for module in modules:
        registry = getattr(sys.modules[type(module).__module__], "ALL_ATTENTION_FUNCTIONS", None)
        local: MutableMapping[str, Callable[..., Any]] = getattr(registry, "_local_mapping", {})
        table = local if implementation in local else _common_table()
        tables[id(table)] = table
    return list(tables.values())


def _common_table() -> MutableMapping[str, Callable[..., Any]]:
    table: Any = AttentionInterface._global_mapping
    return table  # type: ignore[no-any-return]
