"""Which device and which type of weights a run uses."""

from __future__ import annotations

import torch

from specaudit.core.errors import UsageError

_DTYPES = {
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float32": torch.float32,
    "float64": torch.float64,
}


def choose_device(name: str) -> torch.device:
    """Return the device that `name` means; `auto` is the accelerator where there is one, else the CPU.

    Raises:
        UsageError: torch does not know the device, or cannot use it here.
    """
    if name == "auto":
        accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        return accelerator or torch.device("cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # a build without CUDA raises AssertionError
        reason = str(error).partition("\n")[0]
        raise UsageError(
            f"cannot use the device '{name}': {reason}", where="--device", way_out="--device cpu"
        ) from error
    if device.type == "meta":
        raise UsageError("the device 'meta' holds no weights", where="--device", way_out="--device cpu")
    return device


def choose_dtype(name: str | None, device: torch.device) -> torch.dtype | None:
    """Return the type of weights that `name` (one of `options.DTYPES`, or None) means; None for the checkpoint's own.

    Without a name that is float32 on a CPU, where half precision is slow and its rounding hides faults, and the
    checkpoint's own on an accelerator, where it is what people run.

    Raises:
        UsageError: the device has no such type.
    """
    if name is None:
        return torch.float32 if device.type == "cpu" else None
    if name == "auto":
        return None
    if name == "float64" and device.type == "mps":
        raise UsageError("the device 'mps' has no float64", where="--dtype", way_out="--dtype float32 or --device cpu")
    return _DTYPES[name]
