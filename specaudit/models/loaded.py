"""Models ready for use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from specaudit.models.drafts import NgramDraft, StressDraft


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A causal language model in evaluation mode, without gradients, with what is needed to decode with it."""

    model: PreTrainedModel = field(repr=False)
    """The model."""

    tokenizer: Any = field(repr=False)
    """Its tokenizer; for a draft that has none, the target's."""

    source: str
    """As the user named it."""

    digest: str
    """SHA-256 (hex) of configuration and weights, after any conversion of the dtype; see `model_digest`."""

    dtype: torch.dtype
    """Type of the weights."""

    device: torch.device
    """Where the weights are."""

    attn: str
    """Attention implementation in force, by its name in transformers."""

    eos_token_ids: frozenset[int]
    """Ids that end a text; may be empty. See `special_ids.eos_ids`."""

    pad_token_id: int
    """Id to fill rows up with, below `vocab_size`. See `special_ids.pad_id`."""

    vocab_size: int
    """Width of the logits; a checkpoint may have padded it beyond the tokenizer's vocabulary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPair:
    """A target and its draft, which agree on what an id means."""

    target: LoadedModel
    """The model whose greedy output is the truth."""

    draft: LoadedModel | StressDraft | NgramDraft | None
    """The model that proposes, a recipe for proposals without a model, or None."""
