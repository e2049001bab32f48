"""Where a causal language model keeps what the taps need: body, attention layers, position modules, head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import nn

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionLayer:
    """One attention module of the target."""

    index: int
    """Layer index, as the module knows it."""

    module: nn.Module
    """The module that calls the attention function."""

    window: int | None
    """Most slots that a query sees, itself included, or None for no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anatomy:
    """The parts of a target that the taps hold on to."""

    body: nn.Module
    """Module that owns the list of decoder layers; its forward is a step."""

    layers: tuple[AttentionLayer, ...]
    """Attention layers in order of their index."""

    rotary: tuple[nn.Module, ...]
    """Rotary embeddings of the body."""

    learned: tuple[nn.Module, ...]
    """Learned position tables of the body, called with the position IDs."""

    counted: tuple[nn.Module, ...]
    """Learned position tables that work the positions out from the mask (OPT)."""

    embedding: nn.Module | None
    """Input embedding, for the ids that were fed."""

    head: nn.Module | None
    """Output embedding, for the logits."""

    obstacles: tuple[str, ...]
    """Why parts of this model cannot be observed, for people; empty when everything can be."""


def examine(model: PreTrainedModel) -> Anatomy:
    """Return the anatomy of `model`; what it lacks is named in `obstacles`, never guessed."""
    named = [
        (name, module)
        for name, module in model.named_modules()
        if type(module).__name__.endswith("Attention") and getattr(module, "layer_idx", None) is not None
    ]
    body = _owner_of_layers(model, [name for name, _ in named])
    layers = sorted(
        (AttentionLayer(index=_layer_index(module), module=module, window=_window(module)) for _, module in named),
        key=lambda layer: layer.index,
    )
    inside = list(body.named_modules())
    rotary = [module for _, module in inside if "RotaryEmbedding" in type(module).__name__]
    learned = [module for name, module in inside if name.split(".")[-1] == "wpe"]
    counted = [module for _, module in inside if "LearnedPositionalEmbedding" in type(module).__name__]
    obstacles = []
    if not layers:
        obstacles.append(f"{type(model).__name__} has no attention layers that the taps know")
    if not (rotary or learned or counted):
        obstacles.append(f"{type(model).__name__} uses its positions where no tap reaches")
    unknown = sorted(set(_layer_types(model.config)) - {"full_attention", "sliding_attention"})
    if unknown:
        obstacles.append(f"layers of type {', '.join(unknown)} keep state that no tap sees")
    return Anatomy(
        body=body,
        layers=tuple(layers),
        rotary=tuple(rotary),
        learned=tuple(learned),
        counted=tuple(counted),
        embedding=model.get_input_embeddings(),
        head=model.get_output_embeddings(),  # type: ignore[no-untyped-call]
        obstacles=tuple(obstacles),
    )


def _owner_of_layers(model: nn.Module, names: list[str]) -> nn.Module:
    """Return the module that owns the list in which all the named modules live."""
    if not names:
        return model
    paths = [name.split(".") for name in names]
    depth = 0
    while all(len(path) > depth + 1 and path[depth] == paths[0][depth] for path in paths):
        depth += 1
    owner = model.get_submodule(".".join(paths[0][:depth])) if depth else model
    while depth and (isinstance(owner, nn.ModuleList) or not _is_list_owner(owner)):
        depth -= 1
        owner = model.get_submodule(".".join(paths[0][:depth])) if depth else model
    return owner


def _is_list_owner(module: nn.Module) -> bool:
    return any(isinstance(child, nn.ModuleList) for child in module.children())


def _layer_index(module: Any) -> int:
    return int(module.layer_idx)


def _layer_types(config: Any) -> list[str]:
    return list(getattr(config.get_text_config(), "layer_types", None) or [])


def _window(module: nn.Module) -> int | None:
    """Return the sliding window of an attention module, in slots, or None."""
    config: Any = getattr(module, "config", None)
    types = getattr(config, "layer_types", None)
    if types is not None:
        is_sliding = types[_layer_index(module)] == "sliding_attention"
        return int(config.sliding_window) if is_sliding else None
    window = getattr(module, "sliding_window", None)
    if window is None and getattr(config, "use_sliding_window", True):
        window = getattr(config, "sliding_window", None)
    return None if window is None else int(window)
