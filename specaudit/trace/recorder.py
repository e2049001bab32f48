"""The recorder: puts the taps on a target model, and takes them off again."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from weakref import ref

import torch
from torch import Tensor, nn

from specaudit.trace.anatomy import Anatomy, AttentionLayer, examine
from specaudit.trace.attention_tap import attention_tapped, goes_through_registry
from specaudit.trace.cache_tap import cache_writes_tapped
from specaudit.trace.fingerprint import state_fingerprints
from specaudit.trace.ledger import Ledger, column_fingerprints, own_slots
from specaudit.trace.logits_tap import LogitsTap
from specaudit.trace.positions import agreed_positions, counted_positions, rotary_positions, table_positions
from specaudit.trace.premises import caveats, length_limit
from specaudit.trace.records import UNKNOWN, LayerView, SlotParts, Step, Trace
from specaudit.trace.visibility import Visibility, read_mask

if TYPE_CHECKING:
    from collections.abc import Collection
    from types import TracebackType

    import numpy as np
    from transformers import Cache, PreTrainedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One attention call: fingerprints of what it got, and what its mask lets through."""

    layer: AttentionLayer
    held: Tensor  # int64 [2, B, n]
    mask_width: int | None
    reading: int  # index into the step's readings

    @property
    def geometry(self) -> tuple[int | None, int, int | None, int]:
        """Return what layers have in common that see their slots alike."""
        return self.layer.window, self.held.shape[2], self.mask_width, self.reading


@dataclass(slots=True, kw_only=True)
class _OpenStep:
    """A forward that is under way."""

    input_ids: Tensor | None
    cache: int | None = None
    positions: list[Tensor] = field(default_factory=list)
    entered: set[int] = field(default_factory=set)  # layers whose attention module ran
    attended: set[int] = field(default_factory=set)  # layers whose attention was seen
    fed: dict[int, Tensor] = field(default_factory=dict)  # layer -> int64 [2, B, q]
    calls: dict[int, _Call] = field(default_factory=dict)
    readings: list[Tensor] = field(default_factory=list)  # bool [B, q, n]
    reading_of: dict[tuple[int, int, int, bool], int] = field(default_factory=dict)
    masks: list[Tensor] = field(default_factory=list)  # kept alive, so that identities stay unique
    obstacles: list[str] = field(default_factory=list)


STRANGE_SLOTS = 4
"""Most slots of a row with bits that nobody wrote which are looked at layer by layer."""

TRAINING = "the model is in training mode, where dropout may act; call model.eval()"
"""A forward with dropout is no function of its prefix."""

CHANGED = "weights of the model were changed or moved while it was watched"
"""Writes of before the change and of after it are those of two models."""

SEVERAL_THREADS = "forwards of the target ran in other threads than the decoder's own"
"""Steps of several threads cannot be told apart by what modules are called with."""


class Recorder:
    """Records every step of `model` while its context is open; the model's own results keep every bit.

    Use as a context manager; `trace` holds the record. Recorders of different models may be open together, the last one
    opened being closed first.
    """

    def __init__(self, model: PreTrainedModel, *, seed: int = 0, layers: Collection[int] | None = None) -> None:
        """`seed` chooses the weights of the fingerprints.

        `layers` are those whose slots are looked at, by index; what the others hold is then not known, and nothing that
        follows from the trace holds for them. None for all, without which there is no certificate.
        """
        self.model = model
        self.seed = seed
        self.layers = layers
        self.anatomy: Anatomy = examine(model)
        self.trace = Trace(obstacles=list(self.anatomy.obstacles), caveats=caveats(model))
        self._length_limit = length_limit(model)
        self._ledger = Ledger(self.trace)
        self._logits = LogitsTap(self.trace, seed=seed, hears=self._hears)
        self._layers = {id(layer.module): layer for layer in self.anatomy.layers}
        self._caches: list[ref[Cache]] = []
        self._open: _OpenStep | None = None
        self._stack = ExitStack()
        self._thread: int | None = None
        self._weights: list[
            tuple[nn.Module, str, nn.Parameter | None, tuple[int, int]]
        ] = []  # as they were at the beginning

    def __deepcopy__(self, memo: dict[int, Any]) -> Recorder:
        """Return a recorder that hears nothing: a model copied while it is watched takes its hooks along."""
        return Recorder(self.model, seed=self.seed, layers=self.layers)

    def _hears(self) -> bool:
        """Return whether a step is open and this is the thread that opened the recorder; others are noted, not heard."""
        if self._thread is None:
            return False
        if threading.get_ident() == self._thread:
            return True
        if SEVERAL_THREADS not in self.trace.obstacles:
            self.trace.obstacles.append(SEVERAL_THREADS)
        return False

    def __enter__(self) -> Self:
        """Put the taps on."""
        self._thread = threading.get_ident()
        self._weights = [
            (module, name, one, (0, 0) if one is None else _state(one))
            for module in self.model.modules()
            for name, one in module._parameters.items()
        ]
        modules = [layer.module for layer in self.anatomy.layers]
        self._implementation = self._current_implementation()
        with ExitStack() as stack:
            if modules:
                stack.enter_context(attention_tapped(modules, self._implementation, self._on_attention))
            stack.enter_context(cache_writes_tapped(self._on_write))
            for handle in self._hooks():
                stack.callback(handle.remove)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Take the taps off."""
        self._stack.close()
        self._thread = self._open = None
        self._logits.expect(None)

    def _hooks(self) -> list[Any]:
        anatomy = self.anatomy
        handles = [
            anatomy.body.register_forward_pre_hook(self._on_start, with_kwargs=True),
            anatomy.body.register_forward_hook(self._on_end, always_call=True),
            *(layer.module.register_forward_pre_hook(self._on_layer) for layer in anatomy.layers),
            *self._logits.hooks(self.model, anatomy.head),
        ]
        if anatomy.embedding is not None:
            handles.append(anatomy.embedding.register_forward_pre_hook(self._on_embedding))
        for modules, positions_of in (
            (anatomy.rotary, rotary_positions),
            (anatomy.learned, table_positions),
            (anatomy.counted, counted_positions),
        ):
            for module in modules:
                hook = self._position_hook(positions_of)
                handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))
        return handles

    # What the model tells while a step is open

    def _on_start(self, module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        if not self._hears():
            return
        input_ids = options.get("input_ids", arguments[0] if arguments else None)
        self._logits.expect(None)
        self._open = _OpenStep(input_ids=None if input_ids is None else input_ids.detach().clone())

    def _on_embedding(self, module: nn.Module, arguments: tuple[Any, ...]) -> None:
        if self._hears() and self._open is not None and self._open.input_ids is None and arguments:
            self._open.input_ids = arguments[0].detach().clone()

    def _on_layer(self, module: nn.Module, arguments: tuple[Any, ...]) -> None:
        if self._hears() and self._open is not None:
            self._open.entered.add(self._layers[id(module)].index)

    def _position_hook(self, positions_of: Any) -> Any:
        def hook(module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
            if self._hears() and self._open is not None:
                positions = positions_of(arguments, options)
                if positions is None:
                    self._open.obstacles.append("a position module was called in an unknown way")
                else:
                    self._open.positions.append(positions.detach().clone())

        return hook

    def _on_write(self, cache: Cache, layer: int, keys: Tensor, values: Tensor) -> None:
        if not self._hears() or self._open is None:
            return
        self._open.cache = self._cache_number(cache)
        if not self._looks_at(layer):
            return
        self._open.fed[layer] = state_fingerprints(keys, values, layer=layer, seed=self.seed)

    def _looks_at(self, layer: int) -> bool:
        return self.layers is None or layer in self.layers

    def _cache_number(self, cache: Cache) -> int:
        for number in reversed(range(len(self._caches))):
            if self._caches[number]() is cache:
                return number
        self._caches.append(ref(cache))
        return len(self._caches) - 1

    def _on_attention(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Any, is_causal: bool
    ) -> None:
        step = self._open
        if step is None or not self._hears():
            return
        layer = self._layers[id(module)]
        step.attended.add(layer.index)
        if not self._looks_at(layer.index):
            return
        queries, width = query.shape[2], key.shape[2]
        held = state_fingerprints(key, value, layer=layer.index, seed=self.seed)
        if layer.index not in step.fed:
            if queries != width:
                step.obstacles.append("the cache is written where no tap sees it")
            step.fed[layer.index] = held[:, :, -queries:]
        step.calls[layer.index] = _Call(
            layer=layer,
            held=held,
            mask_width=int(mask.shape[-1]) if isinstance(mask, Tensor) else None,
            reading=self._reading(step, mask, query.shape[0], queries, width, is_causal),
        )

    def _reading(self, step: _OpenStep, mask: Any, batch: int, queries: int, width: int, is_causal: bool) -> int:
        """Return the index of the mask's reading; layers mostly share one mask, which is read once."""
        key = (0 if mask is None else id(mask), queries, width, is_causal)
        known = step.reading_of.get(key)
        if known is not None:
            return known
        reading = read_mask(
            mask,
            batch=batch,
            queries=queries,
            width=width,
            implementation=self._implementation,
            is_causal=is_causal,
        )
        if reading.obstacle is not None:
            step.obstacles.append(reading.obstacle)
        if mask is not None:
            step.masks.append(mask)
        step.reading_of[key] = _place_of(reading, step.readings)
        return step.reading_of[key]

    def _on_end(self, module: nn.Module, arguments: tuple[Any, ...], output: Any) -> None:
        if not self._hears():
            return
        step, self._open = self._open, None
        if step is None or output is None:  # a forward that raised made no logits and is no step
            return
        self._close(step)
        self._logits.expect(output[0] if isinstance(output, tuple) else output.last_hidden_state)

    # From what was told to the record

    def _close(self, step: _OpenStep) -> None:
        index = len(self.trace.steps)
        obstacles = list(step.obstacles)
        input_ids = None if step.input_ids is None else step.input_ids.cpu().numpy()
        if input_ids is None:
            obstacles.append("the token ids fed were not seen (inputs_embeds)")
        layers = {layer.index for layer in self.anatomy.layers}
        unseen = layers & step.entered - step.attended
        if unseen:
            obstacles.append(self._unseen_attention(len(unseen)))
        positions = None
        if input_ids is not None:
            positions, obstacle = agreed_positions(step.positions, input_ids.shape)
            obstacles += [obstacle] if obstacle is not None else []
        if self._length_limit is not None and positions is not None and int(positions.max()) >= self._length_limit:
            obstacles.append(f"from position {self._length_limit} on the encoding depends on the longest row (rotary)")
        obstacles += self.broken_premises()
        views = self._views(step, index, input_ids) if input_ids is not None and step.calls else ()
        if any((view.own_slots == UNKNOWN).any() for view in views):
            obstacles.append("the cache does not hold the bits that were written to it")
        self.trace.steps.append(
            Step(
                index=index,
                input_ids=input_ids,
                position_ids=positions,
                views=views,
                top_ids=None,
                top_logits=None,
                tied_ids={},
                cache=step.cache,
                is_complete=layers <= step.entered,
                obstacles=tuple(dict.fromkeys(obstacles)),
            )
        )

    def broken_premises(self) -> list[str]:
        """Return what makes the model no function of its prefixes now, for people; empty when nothing does."""
        acting = (module for module in self.model.modules() if not isinstance(module, (nn.ModuleList, nn.ModuleDict)))
        found = [TRAINING] if any(module.training for module in acting) else []
        is_changed = any(
            module._parameters.get(name) is not one or (one is not None and _state(one) != state)
            for module, name, one, state in self._weights
        )
        return [*found, CHANGED] if is_changed else found

    def _views(self, step: _OpenStep, index: int, input_ids: np.ndarray) -> tuple[LayerView, ...]:
        groups: dict[tuple[int | None, int, int | None, int], list[_Call]] = {}
        for call in step.calls.values():
            groups.setdefault(call.geometry, []).append(call)
        fed = {layer: step.fed[layer].cpu().numpy() for layer in step.calls}  # [2, B, q] each
        self._ledger.enter(index, input_ids, fed)
        views = []
        for (window, width, mask_width, reading), calls in groups.items():
            layers = tuple(sorted(call.layer.index for call in calls))
            states = torch.stack([call.held for call in calls])  # [layers, 2, B, n]
            held = states.sum((0, 1)).cpu().numpy()  # [B, n]
            visible = step.readings[reading].cpu().numpy()
            contents = self._ledger.look_up(layers, held)
            views.append(
                LayerView(
                    layers=layers,
                    window=window,
                    width=width,
                    mask_width=mask_width,
                    visible=visible,
                    contents=contents,
                    own_slots=own_slots(column_fingerprints(fed, layers), held, visible),
                    parts=self._parts(calls, states, (contents == UNKNOWN) & visible.any(1)),
                )
            )
        return tuple(sorted(views, key=lambda view: (view.window is not None, -view.width, view.layers)))

    def _parts(self, calls: list[_Call], states: Tensor, is_strange: np.ndarray) -> dict[tuple[int, int], SlotParts]:
        """Return what each layer holds in slots that nobody wrote, the first few of each row."""
        if not is_strange.any():
            return {}
        by_layer = {call.layer.index: held for call, held in zip(calls, states.cpu().numpy(), strict=True)}
        return {
            (row, column): self._ledger.parts(by_layer, row, column)
            for row, columns in enumerate(is_strange)
            for column in columns.nonzero()[0][:STRANGE_SLOTS].tolist()
        }

    def _unseen_attention(self, count: int) -> str:
        now = self._current_implementation()
        if now != self._implementation:
            return f"the attention implementation was changed from '{self._implementation}' to '{now}'"
        unseen = f"'{now}' attention was not seen in {count} of {len(self.anatomy.layers)} layers"
        if not any(goes_through_registry(layer.module) for layer in self.anatomy.layers):
            return f"{unseen}: this architecture cannot be observed yet, outputs are compared all the same"
        return unseen if now == "sdpa" else f"{unseen}; try --attn sdpa"

    def _current_implementation(self) -> str:
        first = self.anatomy.layers[0].module if self.anatomy.layers else self.model
        config: Any = getattr(first, "config", self.model.config)
        return str(config._attn_implementation)


def _state(tensor: Tensor) -> tuple[int, int]:
    """Return where a tensor lies and how often it was written to; inference tensors do not count that."""
    return tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version


def outer_layers(model: PreTrainedModel) -> frozenset[int]:
    """Return the first and the last attention layer of each window, by index."""
    by_window: dict[int | None, list[int]] = {}
    for layer in examine(model).layers:
        by_window.setdefault(layer.window, []).append(layer.index)
    return frozenset(end for indices in by_window.values() for end in (min(indices), max(indices)))


def _place_of(reading: Visibility, readings: list[Tensor]) -> int:
    """Return the place of a reading among `readings`, appended where none is equal."""
    visible = reading.visible
    for place, other in enumerate(readings):
        if other.shape == visible.shape and torch.equal(other, visible):
            return place
    readings.append(visible)
    return len(readings) - 1
