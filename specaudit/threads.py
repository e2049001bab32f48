"""How many torch threads a run takes.

A matrix of a few million weights is multiplied faster than two threads agree who does which half of it: on a busy
machine a second thread makes a small model ten times slower. So small models on a CPU get one, unless the user decides.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from specaudit.models.loaded import LoadedModel

SMALL_MODEL = 20_000_000
"""Parameters below which one thread is taken."""


@contextmanager
def torch_threads(asked: int | None, target: LoadedModel) -> Iterator[None]:
    """Run the block with the threads `asked` for, or with what suits the target; put the number back after it."""
    before = torch.get_num_threads()
    torch.set_num_threads(asked or suitable_threads(target) or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def suitable_threads(target: LoadedModel) -> int | None:
    """Return the threads that suit a target, or None for torch's own choice."""
    is_small = sum(parameter.numel() for parameter in target.model.parameters()) < SMALL_MODEL
    return 1 if is_small and target.device.type == "cpu" else None
