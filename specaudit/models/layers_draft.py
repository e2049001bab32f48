"""The draft `layers:N`: the target's own first layers."""

from __future__ import annotations

import copy
from itertools import chain
from typing import TYPE_CHECKING, Any

from torch import nn

from specaudit.core.errors import ModelError
from specaudit.models.special_ids import text_config

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def first_layers(target: PreTrainedModel, layers: int) -> PreTrainedModel:
    """Return a model of the target's class with its first `layers` layers, its embedding, last norm and head.

    Every parameter and buffer is the target's own tensor, so the draft takes no memory. The modules around them are
    new, so a hook on the target, or a look at which module called attention, never takes the draft for the target.

    Raises:
        ModelError: the target has fewer layers, or they cannot be found.
    """
    count = text_config(target).num_hidden_layers
    if layers > count:
        raise ModelError(
            f"the target has {count} layers", where=f"--draft layers:{layers}", way_out=f"give layers:{count} or fewer"
        )
    # `deepcopy` takes what its memo holds instead of copying it: the modules are copied, the tensors shared. The
    # configuration is copied once and stays one object for all the modules of the draft.
    memo: dict[int, Any] = {id(tensor): tensor for tensor in chain(target.parameters(), target.buffers())}
    draft = copy.deepcopy(target, memo)
    path = _layer_list(draft, count)
    parent, _, name = path.rpartition(".")
    setattr(draft.get_submodule(parent), name, nn.ModuleList(list(draft.get_submodule(path).children())[:layers]))
    _shorten(text_config(draft), count, layers)
    return draft


def _layer_list(model: PreTrainedModel, count: int) -> str:
    """Return the path of the outermost list of `count` modules."""
    lists = [
        path for path, module in model.named_modules() if isinstance(module, nn.ModuleList) and len(module) == count
    ]
    if lists:
        return str(lists[0])
    raise ModelError(
        f"cannot find the {count} layers of {type(model).__name__}",
        where="--draft layers:N",
        way_out="use noisy:SCALE or stress:RATE",
    )


def _shorten(config: Any, count: int, layers: int) -> None:
    """Make a configuration describe the first `layers` of `count` layers, lists that speak of each layer included."""
    for name, value in list(vars(config).items()):
        if isinstance(value, list) and len(value) == count and "layer" in name:
            setattr(config, name, value[:layers])
    config.num_hidden_layers = layers
