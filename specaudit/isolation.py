"""Keeping one decoder's side effects from the next: what it may leave changed is put back."""

from __future__ import annotations

import copy
import os
import random
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from transformers import PreTrainedModel


@contextmanager
def isolated(models: list[PreTrainedModel], tokenizer: Any, *, seed: int) -> Iterator[None]:
    """Seed the generators, then run the block and put back what a decoder may leave changed.

    Put back: the state of Python's and torch's generators, default dtype, gradient mode, deterministic mode, thread
    count, training mode, attention implementation and generation config of the models, padding side and pad token of the
    tokenizer, the current folder, standard output and standard error.
    """
    folder, streams = Path.cwd(), (sys.stdout, sys.stderr)
    python_state, torch_state = random.getstate(), torch.get_rng_state()
    dtype, gradients, threads = torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    implementations = [(model.config, model.config._attn_implementation) for model in models]
    modes = [(module, module.training) for model in models for module in model.modules()]
    defaults = [(model, model.generation_config, copy.deepcopy(model.generation_config)) for model in models]
    token_settings = {name: getattr(tokenizer, name, None) for name in ("padding_side", "pad_token")}
    random.seed(seed)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        os.chdir(folder)
        sys.stdout, sys.stderr = streams
        random.setstate(python_state)
        torch.set_rng_state(torch_state)
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(gradients)
        torch.use_deterministic_algorithms(deterministic)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        for config, implementation in implementations:
            if config._attn_implementation != implementation:
                config._attn_implementation = implementation
        for module, training in modes:
            module.training = training
        for model, own, before in defaults:  # assisted generation writes its next draft length into the draft's
            if own is not None and before is not None:
                own.__dict__ = before.__dict__
            model.generation_config = own
        for name, value in token_settings.items():
            if tokenizer is not None and getattr(tokenizer, name, None) != value:
                setattr(tokenizer, name, value)
