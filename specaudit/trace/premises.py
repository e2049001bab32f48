"""What the certificate takes for granted of a model, and where that does not hold.

The proof says what each token's logits are in exact arithmetic, given a forward in which rows do not touch each other and
positions mean the same in every batch. Models that break this are seen like all others, and never called certified.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedModel

LENGTH_DEPENDENT = ("dynamic", "longrope")
"""Kinds of rotary embedding whose angles depend on the longest position in the batch."""

EXPERT_COUNTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
"""Names under which configurations keep the number of experts."""


def caveats(model: PreTrainedModel) -> tuple[str, ...]:
    """Return what keeps a model's outputs from being certified, for people; empty for most models."""
    config: Any = model.config.get_text_config()
    found = []
    if any((getattr(config, name, None) or 0) > 1 for name in EXPERT_COUNTS):
        found.append("rows share the experts of this model, whose capacity may depend on the batch")
    if getattr(model.config, "quantization_config", None) is not None or _is_quantised(model):
        found.append("this model is quantised: the scale of its activations may depend on the batch")
    devices = {str(device) for device in (getattr(model, "hf_device_map", None) or {}).values()}
    if len(devices) > 1:
        found.append(f"this model is spread over {len(devices)} devices")
    return tuple(found)


def length_limit(model: PreTrainedModel) -> int | None:
    """Return the first position from which on the longest row decides how all are encoded, or None for no such.

    Releases of transformers keep the rotary parameters under two names, and by kind of layer where kinds differ.
    """
    config: Any = model.config.get_text_config()
    parameters = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    kinds = [parameters, *(one for one in parameters.values() if isinstance(one, dict))]
    limits = [
        kind.get("original_max_position_embeddings")
        or getattr(config, "original_max_position_embeddings", None)
        or config.max_position_embeddings
        for kind in kinds
        if kind.get("rope_type", kind.get("type")) in LENGTH_DEPENDENT
    ]
    return min(map(int, limits), default=None)


def _is_quantised(model: PreTrainedModel) -> bool:
    """Return whether a module computes in integers or holds packed weights: torch's own and the usual libraries'."""
    names = (f"{type(module).__module__}.{type(module).__name__}".lower() for module in model.modules())
    return any("quantized" in name or "bitsandbytes" in name or "quantlinear" in name for name in names)
