"""How models are to be loaded, as asked for."""

from __future__ import annotations

from dataclasses import dataclass

from specaudit.core.errors import UsageError, nearest

DTYPES = ("auto", "bfloat16", "float16", "float32", "float64")
"""What `--dtype` takes; `auto` is the checkpoint's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """Options that hold for the target and the draft alike, unless they say otherwise."""

    dtype: str | None = None
    """One of `DTYPES`; None for float32 on a CPU and the checkpoint's own on an accelerator."""

    device: str = "auto"
    """`auto` (an accelerator if there is one), `cpu`, `cuda`, `cuda:1`, `mps`, or another name that torch knows."""

    attn: str = "sdpa"
    """Attention implementation by its name in transformers, such as `sdpa` or `eager`."""

    revision: str | None = None
    """Branch, tag or commit of a target from the Hub; None for its default branch."""

    draft_revision: str | None = None
    """The same for a draft from the Hub."""

    trust_remote_code: bool = False
    """Run Python code that comes with a model."""

    allow_pickle: bool = False
    """Load weights from pickle files, which can run code, where there are no safetensors."""

    seed: int = 0
    """Seed of derived drafts (`noisy:`, `stress:`)."""

    def __post_init__(self) -> None:
        """Refuse a dtype that is not one of `DTYPES` (UsageError)."""
        if self.dtype is not None and self.dtype not in DTYPES:
            raise UsageError(f"unknown dtype '{self.dtype}'", where="--dtype", way_out=nearest(self.dtype, DTYPES))
