"""A draft of the target's own first layers that shares the very modules, not copies of them."""

from __future__ import annotations

import copy
from typing import Any

from torch import nn


def shared_layers(target: Any, layers: int) -> Any:
    """Return a model whose embedding, first `layers` layers, norm and head are the target's own module objects."""
    draft = _shallow_copy(target)
    name = next(name for name in ("model", "transformer", "gpt_neox") if hasattr(target, name))
    body = _shallow_copy(getattr(target, name))
    setattr(draft, name, body)
    inner = "h" if hasattr(body, "h") else "layers"
    setattr(body, inner, nn.ModuleList(list(getattr(body, inner))[:layers]))
    draft.config = body.config = copy.deepcopy(target.config)
    draft.config.num_hidden_layers = layers
    return draft


def _shallow_copy(module: Any) -> Any:
    """Return a module of its own with the same children; hooks are its own too."""
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    for hooks in ("_forward_hooks", "_forward_pre_hooks"):
        setattr(twin, hooks, type(getattr(module, hooks))())
    return twin
