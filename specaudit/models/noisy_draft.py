"""The draft `noisy:SCALE`: the target with noise on its weights."""

from __future__ import annotations

import copy
import hashlib
import math
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from specaudit.models.drafts import NoisyDraft


@torch.no_grad()
def with_noise(target: PreTrainedModel, recipe: NoisyDraft) -> PreTrainedModel:
    """Return a copy of the target with Gaussian noise on every parameter of two or more dimensions.

    Those are the weight matrices, embeddings and head included; biases and norms stay. The noise of a parameter has
    `recipe.scale` times its own standard deviation, and depends on the recipe's seed, the parameter's name and its
    values alone: not on the device, the number of threads or the other parameters. Tied weights stay tied.
    """
    draft = copy.deepcopy(target)
    for name, parameter in draft.named_parameters():  # a tied parameter comes once, under its first name
        if parameter.dim() < 2:
            continue
        values = parameter.detach().to("cpu", torch.float32)
        generator = torch.Generator("cpu").manual_seed(_seed_of(name, recipe.seed))
        noise = torch.randn(values.shape, generator=generator, dtype=torch.float32)
        parameter.copy_(values + noise * (recipe.scale * _standard_deviation(values)))
    return draft


def _seed_of(name: str, seed: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8], "big", signed=True)


def _standard_deviation(values: torch.Tensor) -> float:
    # numpy, because torch's sums depend on the number of threads; float64, because the parameters can be large.
    array = values.numpy()
    variance = float(np.mean(np.square(array), dtype=np.float64)) - float(np.mean(array, dtype=np.float64)) ** 2
    return math.sqrt(max(variance, 0.0))
