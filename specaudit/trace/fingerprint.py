"""Fingerprints of cache slots: 64 bits computed from the raw bits of keys and values.

Moving, gathering or cropping a cache copies bits, so a slot keeps its fingerprint wherever it goes. The hash is
multilinear over the 64-bit words of a slot, each folded first: without the fold, words times odd weights collide whenever
two sign bits flip. For weights that were not chosen by an adversary, two contents that differ throughout share a
fingerprint with probability of about 2**-64, and two that differ in a few high bits alone of at most 2**-31.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

_INTEGER_OF_BYTES = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@lru_cache(maxsize=256)
def _weights(count: int, stream: int, seed: int, device: torch.device) -> Tensor:
    generator = torch.Generator().manual_seed(seed * 1_000_003 + stream * 8191 + count)
    weights = torch.randint(-(2**62), 2**62, (count,), generator=generator, dtype=torch.int64)
    return (weights * 2 + 1).to(device)


def slot_fingerprints(states: Tensor, *, seed: int) -> Tensor:
    """Return one fingerprint a row and slot, int64 [B, n], of keys or values [B, heads, n, width].

    Zeros of either sign count as one: a realignment that adds 0.0 flips them and changes nothing.
    """
    states = states.detach()
    if states.is_floating_point():
        states = states + 0.0  # -0.0 + 0.0 is +0.0; the sum is also a dense copy, so its words can be viewed
    words = _words(states)  # [B, heads, n, w]
    words = words ^ (words >> 33)
    heads, width = words.shape[1], words.shape[3]
    weights = _weights(heads * width, 0, seed, words.device).view(heads, 1, width)
    return (words * weights).sum(3).sum(1)


def state_fingerprints(keys: Tensor, values: Tensor, *, layer: int, seed: int) -> Tensor:
    """Return the fingerprints of a layer's keys and values, int64 [2, B, n], ready to be added to each other's."""
    with torch.no_grad():
        return torch.stack(
            [
                combine(slot_fingerprints(keys, seed=seed), stream=2 * layer, seed=seed),
                combine(slot_fingerprints(values, seed=seed), stream=2 * layer + 1, seed=seed),
            ]
        )


def combine(fingerprints: Tensor, *, stream: int, seed: int) -> Tensor:
    """Return fingerprints ready to be added to those of other layers and tensors, int64 as given.

    `stream` numbers the layer and tensor that they come from, so that equal bits in two places differ.
    """
    mixed = fingerprints ^ (fingerprints >> 31)
    weight = _weights(1, stream + 1, seed, fingerprints.device)
    return mixed * weight


def _words(states: Tensor) -> Tensor:
    states = states.contiguous()
    if (states.shape[-1] * states.element_size()) % 8 == 0:
        return states.view(torch.int64)
    return states.view(_INTEGER_OF_BYTES[states.element_size()]).to(torch.int64)
