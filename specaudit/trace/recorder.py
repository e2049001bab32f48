"""The recorder: puts the taps on a target model, and takes them off again."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from specaudit.trace.anatomy import Anatomy, AttentionLayer, examine
from specaudit.trace.attention_tap import attention_tapped
from specaudit.trace.cache_tap import cache_writes_tapped
from specaudit.trace.fingerprint import combine, slot_fingerprints
from specaudit.trace.ledger import Ledger, own_slots
from specaudit.trace.records import LayerView, Step, Trace
from specaudit.trace.visibility import read_mask

if TYPE_CHECKING:
    from types import TracebackType

    from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One attention call: fingerprints of what it got, and what its mask lets through."""

    layer: AttentionLayer
    held: Tensor  # int64 [B, n]
    fed: Tensor  # int64 [B, q]
    mask_width: int | None
    reading: int  # index into the step's readings


@dataclass(slots=True, kw_only=True)
class _OpenStep:
    """A forward that is under way."""

    input_ids: Tensor | None
    positions: list[Tensor] = field(default_factory=list)
    written: dict[int, Tensor] = field(default_factory=dict)  # layer -> int64 [B, q]
    calls: dict[int, _Call] = field(default_factory=dict)
    readings: list[Tensor] = field(default_factory=list)  # bool [B, q, n]
    reading_of: dict[tuple[int, int, int, bool], int] = field(default_factory=dict)
    masks: list[Tensor] = field(default_factory=list)  # kept alive, so that identities stay unique
    obstacles: list[str] = field(default_factory=list)


class Recorder:
    """Records every step of `model` while its context is open; the model's own results keep every bit.

    Use as a context manager; `trace` holds the record. Recorders of different models may be open together.
    """

    def __init__(self, model: PreTrainedModel, *, seed: int = 0) -> None:
        """`seed` chooses the weights of the fingerprints."""
        self.model = model
        self.seed = seed
        self.anatomy: Anatomy = examine(model)
        self.trace = Trace(obstacles=list(self.anatomy.obstacles))
        self._ledger = Ledger(self.trace)
        self._layers = {id(layer.module): layer for layer in self.anatomy.layers}
        self._open: _OpenStep | None = None
        self._hidden: Tensor | None = None  # [B, q, width] of the last step, until its logits are seen
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Put the taps on."""
        modules = [layer.module for layer in self.anatomy.layers]
        self._implementation = _attention_implementation(self.model, modules)
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
        self._open = self._hidden = None

    def _hooks(self) -> list[Any]:
        anatomy = self.anatomy
        handles = [
            anatomy.body.register_forward_pre_hook(self._on_start, with_kwargs=True),
            anatomy.body.register_forward_hook(self._on_end, always_call=True),
        ]
        if anatomy.embedding is not None:
            handles.append(anatomy.embedding.register_forward_pre_hook(self._on_embedding))
        if anatomy.head is not None:
            handles.append(anatomy.head.register_forward_hook(self._on_head))
        for modules, positions_of in (
            (anatomy.rotary, _rotary_positions),
            (anatomy.learned, _table_positions),
            (anatomy.counted, _counted_positions),
        ):
            for module in modules:
                hook = self._position_hook(positions_of)
                handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))
        return handles

    # What the model tells while a step is open

    def _on_start(self, module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        input_ids = options.get("input_ids", arguments[0] if arguments else None)
        self._hidden = None
        self._open = _OpenStep(input_ids=None if input_ids is None else input_ids.detach().clone())

    def _on_embedding(self, module: nn.Module, arguments: tuple[Any, ...]) -> None:
        if self._open is not None and self._open.input_ids is None and arguments:
            self._open.input_ids = arguments[0].detach().clone()

    def _position_hook(self, positions_of: Any) -> Any:
        def hook(module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
            if self._open is not None:
                positions = positions_of(arguments, options)
                if positions is None:
                    self._open.obstacles.append("a position module was called in an unknown way")
                else:
                    self._open.positions.append(positions.detach().clone())

        return hook

    def _on_write(self, layer: int, keys: Tensor, values: Tensor) -> None:
        if self._open is not None:
            self._open.written[layer] = self._fingerprint(layer, keys, values)

    def _on_attention(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool
    ) -> None:
        step = self._open
        if step is None:
            return
        layer = self._layers[id(module)]
        queries, width = query.shape[2], key.shape[2]
        held = self._fingerprint(layer.index, key, value)
        fed = step.written.get(layer.index)
        if fed is None:
            if queries != width:
                step.obstacles.append("the cache is written where no tap sees it")
            fed = held[:, -queries:]
        step.calls[layer.index] = _Call(
            layer=layer,
            held=held,
            fed=fed,
            mask_width=None if mask is None else int(mask.shape[-1]),
            reading=self._reading(step, mask, query.shape[0], queries, width, is_causal),
        )

    def _reading(
        self, step: _OpenStep, mask: Tensor | None, batch: int, queries: int, width: int, is_causal: bool
    ) -> int:
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
        step.readings.append(reading.visible)
        step.reading_of[key] = len(step.readings) - 1
        return step.reading_of[key]

    def _on_end(self, module: nn.Module, arguments: tuple[Any, ...], output: Any) -> None:
        step, self._open = self._open, None
        if step is None or output is None:  # a forward that raised made no logits and is no step
            return
        self._close(step)
        self._hidden = output[0] if isinstance(output, tuple) else output.last_hidden_state

    def _on_head(self, module: nn.Module, arguments: tuple[Any, ...], output: Tensor) -> None:
        """Attach the top logits to the queries whose hidden states the head consumed, matched by their bits."""
        if self._hidden is None or not arguments or not self.trace.steps:
            return
        consumed = arguments[0].reshape(-1, arguments[0].shape[-1])  # [N, width]
        hidden = self._hidden
        place_of = {bits: place for place, bits in enumerate(self._bits(hidden.reshape(-1, hidden.shape[-1])))}
        bits_consumed = self._bits(consumed)
        if any(bits not in place_of for bits in bits_consumed):
            return  # the head of a draft that shares it
        places = [place_of[bits] for bits in bits_consumed]
        values, ids = output.detach().reshape(len(places), -1).topk(2)
        step = self.trace.steps[-1]
        rows, queries = hidden.shape[:2]
        top_ids = np.full((rows * queries, 2), -1, dtype=np.int64)
        top_logits = np.full((rows * queries, 2), np.nan)
        top_ids[places], top_logits[places] = ids.cpu().numpy(), values.double().cpu().numpy()
        self.trace.steps[-1] = replace(
            step, top_ids=top_ids.reshape(rows, queries, 2), top_logits=top_logits.reshape(rows, queries, 2)
        )
        self._hidden = None

    # From what was told to the record

    def _fingerprint(self, layer: int, keys: Tensor, values: Tensor) -> Tensor:
        with torch.no_grad():
            key_bits = combine(slot_fingerprints(keys, seed=self.seed), stream=2 * layer, seed=self.seed)
            value_bits = combine(slot_fingerprints(values, seed=self.seed), stream=2 * layer + 1, seed=self.seed)
            return key_bits + value_bits

    def _bits(self, states: Tensor) -> list[int]:
        fingerprints: list[int] = slot_fingerprints(states[None, None], seed=self.seed)[0].tolist()
        return fingerprints

    def _close(self, step: _OpenStep) -> None:
        index = len(self.trace.steps)
        obstacles = list(dict.fromkeys(step.obstacles))
        input_ids = None if step.input_ids is None else step.input_ids.cpu().numpy()
        if input_ids is None:
            obstacles.append("the token ids fed were not seen (inputs_embeds)")
        unseen = [layer.index for layer in self.anatomy.layers if layer.index not in step.calls]
        if unseen:
            obstacles.append(
                f"attention was not seen in {len(unseen)} of {len(self.anatomy.layers)} layers "
                f"(implementation '{self._implementation}'; try --attn sdpa)"
            )
        positions = None
        if input_ids is not None:
            positions, obstacle = _positions(step.positions, input_ids.shape)
            obstacles += [obstacle] if obstacle is not None else []
        views = self._views(step, index, input_ids) if input_ids is not None and step.calls else ()
        self.trace.steps.append(
            Step(
                index=index,
                input_ids=input_ids,
                position_ids=positions,
                views=views,
                top_ids=None,
                top_logits=None,
                obstacles=tuple(obstacles),
            )
        )

    def _views(self, step: _OpenStep, index: int, input_ids: np.ndarray) -> tuple[LayerView, ...]:
        groups: dict[tuple[int | None, int, int | None, int], list[_Call]] = {}
        for call in step.calls.values():
            geometry = (call.layer.window, call.held.shape[1], call.mask_width, call.reading)
            groups.setdefault(geometry, []).append(call)
        writes = self._ledger.open_writes(index, input_ids)
        views = []
        for (window, width, mask_width, reading), calls in groups.items():
            layers = tuple(sorted(call.layer.index for call in calls))
            held = torch.stack([call.held for call in calls]).sum(0).cpu().numpy()  # [B, n]
            fed = torch.stack([call.fed for call in calls]).sum(0).cpu().numpy()  # [B, q]
            visible = step.readings[reading].cpu().numpy()
            self._ledger.enter(layers, fed, writes)
            views.append(
                LayerView(
                    layers=layers,
                    window=window,
                    width=width,
                    mask_width=mask_width,
                    visible=visible,
                    contents=self._ledger.look_up(layers, held),
                    own_slots=own_slots(fed, held, visible),
                )
            )
        return tuple(sorted(views, key=lambda view: (view.window is not None, -view.width, view.layers)))


def _attention_implementation(model: PreTrainedModel, modules: list[nn.Module]) -> str:
    config: Any = getattr(modules[0], "config", model.config) if modules else model.config
    return str(config._attn_implementation)


def _rotary_positions(arguments: tuple[Any, ...], options: dict[str, Any]) -> Tensor | None:
    if "position_ids" in options:
        return options["position_ids"]  # type: ignore[no-any-return]
    return arguments[1] if len(arguments) > 1 and isinstance(arguments[1], Tensor) else None


def _table_positions(arguments: tuple[Any, ...], options: dict[str, Any]) -> Tensor | None:
    return arguments[0] if arguments else options.get("input")


def _counted_positions(arguments: tuple[Any, ...], options: dict[str, Any]) -> Tensor | None:
    """Return the positions that OPT's table uses: given, or counted in the mask behind the cache."""
    given = options.get("position_ids", arguments[2] if len(arguments) > 2 else None)
    if given is not None:
        return given  # type: ignore[no-any-return]
    mask = options.get("attention_mask", arguments[0] if arguments else None)
    if mask is None:
        return None
    past = arguments[1] if len(arguments) > 1 else options.get("cache_length", options.get("past_key_values_length", 0))
    return (mask.cumsum(1) * mask - 1).long()[:, past:]  # type: ignore[no-any-return]


def _positions(seen: list[Tensor], shape: tuple[int, ...]) -> tuple[np.ndarray | None, str | None]:
    """Return the positions of a step, int64 [B, q], or why they are not known."""
    if not seen:
        return None, "the positions used were not seen"
    if any(positions.dim() > 2 for positions in seen):
        return None, "positions with more than one axis are not understood"
    full = [np.broadcast_to(np.atleast_2d(positions.cpu().numpy()), shape) for positions in seen]
    if any(not np.array_equal(full[0], other) for other in full[1:]):
        return None, "layers used different positions in one step"
    return full[0], None
