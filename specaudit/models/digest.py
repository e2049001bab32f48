"""A name for exactly these weights and this configuration."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_NOT_THE_MODEL = frozenset(
    {"_name_or_path", "transformers_version", "torch_dtype", "dtype", "architectures", "attn_implementation"}
)
"""Fields of a configuration that say where it came from or how it was loaded. The weights carry the dtype."""


def model_digest(model: PreTrainedModel) -> str:
    """Return a SHA-256 (hex) over the class, configuration and weights of a model as it is in memory.

    The weights count by name, shape, dtype and raw bits, on whatever device they are, so two loads of one checkpoint in
    one dtype agree and one changed bit does not. Releases of transformers spell configurations differently, so a digest
    holds for one release.
    """
    digest = hashlib.sha256()
    config = json.dumps(_without_provenance(model.config.to_dict()), sort_keys=True, default=str)
    digest.update(f"{type(model).__name__}\n{config}\n".encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        # As bytes, because numpy has no bfloat16; flat, because a scalar has no bytes view.
        raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        digest.update(raw.numpy())
    return digest.hexdigest()


def _without_provenance(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_provenance(item) for key, item in value.items() if key not in _NOT_THE_MODEL}
    return value
