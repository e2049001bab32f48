"""What the oracle must say: each token's logits from an uncached forward of its own prefix, alone and unpadded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from specaudit.core.scores import PromptedOutput
from specaudit.oracle.replay import replay

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from transformers import PreTrainedModel

    from specaudit.core.scores import Replay

CLOSE = 1e-9
"""Most that two float64 forwards of different shapes may differ, in logits."""

CLOSE_IN_FLOAT32 = 1e-5
"""The same where attention is computed in float32 whatever the type of the weights (Bloom)."""


@dataclass(frozen=True)
class Truth:
    """What one token's prefix predicts."""

    logits: list[float]

    def rank(self, token: int, close: float) -> int:
        return sum(logit > self.logits[token] + close for logit in self.logits)

    def regret(self, token: int) -> float:
        return max(self.logits) - self.logits[token]


@torch.no_grad()
def truths(model: PreTrainedModel, output: PromptedOutput) -> list[Truth]:
    """Return what predicts each token of an output."""
    found = []
    for place in range(len(output.output_ids)):
        ids = [*output.prompt_ids, *output.output_ids[:place]]
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
        found.append(Truth(logits.double().tolist()))
    return found


def prompted(prompt: Sequence[int], output: Sequence[int]) -> PromptedOutput:
    return PromptedOutput(prompt_ids=tuple(prompt), output_ids=tuple(output))


def checked(model: PreTrainedModel, outputs: Sequence[PromptedOutput], **options: Any) -> tuple[Replay, ...]:
    """Replay outputs, hold every score against the authority, and return them."""
    replays = replay(model, outputs, **{"pad_token_id": 0, **options})
    assert len(replays) == len(outputs)
    close = CLOSE_IN_FLOAT32 if model.config.model_type == "bloom" else CLOSE
    for output, found in zip(outputs, replays, strict=True):
        assert found.error is None
        assert [score.token_id for score in found.scores] == list(output.output_ids)
        assert [score.index for score in found.scores] == list(range(len(output.output_ids)))
        for score, truth in zip(found.scores, truths(model, output), strict=True):
            assert abs(score.regret - truth.regret(score.token_id)) < close
            assert score.rank == truth.rank(score.token_id, close)
            assert abs(score.largest_logit - max(truth.logits)) < close
            assert truth.regret(score.argmax_id) < close
    return replays
