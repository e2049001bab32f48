"""The tap on logits: which token the target finds most likely after each query.

The head may be called on some of the queries (`logits_to_keep`), more than once, or by the decoder itself, so its input is
matched with the last hidden states of the body by their bits. What the whole model returns wins over what the head gave:
some models cap or scale the head's output. Calls of the head by a draft that shares it match nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from specaudit.trace.fingerprint import slot_fingerprints
from specaudit.trace.records import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable

    from specaudit.trace.records import Step, Trace


class LogitsTap:
    """Attaches top logits to the last step of a trace."""

    def __init__(self, trace: Trace, *, seed: int, hears: Callable[[], bool]) -> None:
        """`seed` chooses the weights of the fingerprints; nothing is taken from a call while `hears` says no."""
        self._hears = hears
        self._trace = trace
        self._seed = seed
        self._hidden_bits: list[int] = []  # of the last step's queries, row by row
        self._hidden: Tensor | None = None
        self._is_inside_model = False
        self._waiting: tuple[list[int], Tensor] | None = None

    def hooks(self, model: nn.Module, head: nn.Module | None) -> list[Any]:
        """Put the tap on and return the handles that take it off."""
        handles = [
            model.register_forward_pre_hook(self._on_model_start),
            model.register_forward_hook(self._on_model_end, always_call=True),
        ]
        if head is not None:
            handles.append(head.register_forward_hook(self._on_head))
        return handles

    def expect(self, hidden: Tensor | None) -> None:
        """Take the last hidden states of the step that just ended, [B, q, width]; None forgets them."""
        self._hidden, self._hidden_bits, self._waiting = hidden, [], None

    def _on_model_start(self, module: nn.Module, arguments: tuple[Any, ...]) -> None:
        self._is_inside_model = self._hears()

    def _on_model_end(self, module: nn.Module, arguments: tuple[Any, ...], output: Any) -> None:
        if not self._hears():
            return
        self._is_inside_model = False
        waiting, self._waiting = self._waiting, None
        if waiting is None or output is None:
            return
        bits, logits = waiting
        final = getattr(output, "logits", None)
        if isinstance(final, Tensor) and final.dim() > 1 and final.numel() == logits.numel():
            logits = final.detach().reshape(logits.shape)
        self._attach(bits, logits)

    def _on_head(self, module: nn.Module, arguments: tuple[Any, ...], output: Tensor) -> None:
        if not self._hears() or self._hidden is None or not arguments or not self._trace.steps:
            return
        consumed = self._bits(arguments[0])
        self._hidden_bits = self._hidden_bits or self._bits(self._hidden)
        if not set(consumed) <= set(self._hidden_bits):
            return
        logits = output.detach().reshape(len(consumed), -1)
        if self._is_inside_model:
            self._waiting = consumed, logits
        else:
            self._attach(consumed, logits)

    def _bits(self, states: Tensor) -> list[int]:
        with torch.no_grad():
            rows = states.reshape(1, 1, -1, states.shape[-1])
            fingerprints: list[int] = slot_fingerprints(rows, seed=self._seed)[0].tolist()
        return fingerprints

    def _attach(self, consumed: list[int], logits: Tensor) -> None:
        """Note the top of `logits` [N, vocabulary] for the queries with these hidden bits; equal bits get equal logits."""
        place_of = {bits: place for place, bits in enumerate(consumed)}
        queries = [query for query, bits in enumerate(self._hidden_bits) if bits in place_of]
        places = [place_of[self._hidden_bits[query]] for query in queries]
        values, ids = logits.topk(min(2, logits.shape[-1]))
        step = self._trace.steps[-1]
        top_ids, top_logits = _tops(step, len(self._hidden_bits))
        top_ids[queries, : ids.shape[1]] = ids.cpu().numpy()[places]
        top_logits[queries, : ids.shape[1]] = values.double().cpu().numpy()[places]
        width = step.input_ids.shape[1] if step.input_ids is not None else 1
        tied = {
            divmod(query, width): tuple((logits[place] == values[place, 0]).nonzero()[:, 0].tolist())
            for query, place in zip(queries, places, strict=True)
            if top_logits[query, 0] == top_logits[query, 1]
        }
        shape = (len(self._hidden_bits) // width, width, 2)
        self._trace.steps[-1] = replace(
            step,
            top_ids=top_ids.reshape(shape),
            top_logits=top_logits.reshape(shape),
            tied_ids={**step.tied_ids, **tied},
        )


def _tops(step: Step, queries: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the top ids and logits that a step has so far, [B * q, 2] each."""
    if step.top_ids is None or step.top_logits is None:
        return np.full((queries, 2), UNKNOWN, dtype=np.int64), np.full((queries, 2), np.nan)
    return step.top_ids.reshape(-1, 2).copy(), step.top_logits.reshape(-1, 2).copy()
