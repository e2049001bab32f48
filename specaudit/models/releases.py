"""What differs between the releases of transformers that are supported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import transformers

if TYPE_CHECKING:
    import torch

RELEASE = tuple(int(part) for part in transformers.__version__.split(".")[:2])
"""Major and minor number of the installed release."""


def dtype_argument(dtype: torch.dtype | None) -> dict[str, torch.dtype | str]:
    """Return the argument of `from_pretrained` for the type of the weights; None is the checkpoint's own."""
    name = "dtype" if RELEASE >= (4, 56) else "torch_dtype"
    return {name: "auto" if dtype is None else dtype}
