"""The accept rule of greedy speculative decoding (Leviathan et al. 2023, at temperature 0)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def accepted_counts(proposals: Tensor, predictions: Tensor) -> Tensor:
    """Return how many leading proposals of each row the target predicts itself, int64 [B].

    `proposals` is [B, K]; `predictions` is the target's argmax after the last committed token and after each proposal,
    [B, K + 1]. The bonus token of row b is `predictions[b, count]`: at the first mismatch, or after a full acceptance.
    """
    matches = proposals == predictions[:, :-1]
    return matches.long().cumprod(-1).sum(-1)


def committed_tokens(proposals: Tensor, predictions: Tensor, accepted: Tensor) -> list[list[int]]:
    """Return each row's accepted proposals followed by its bonus token: 1 to K + 1 tokens a row."""
    return [
        [*row_proposals[:count], row_predictions[count]]
        for row_proposals, row_predictions, count in zip(
            proposals.tolist(), predictions.tolist(), accepted.tolist(), strict=True
        )
    ]
