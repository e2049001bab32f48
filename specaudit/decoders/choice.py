"""Which token the target chooses: the most likely one, by its raw logits or as a generation config has them processed.

Processors look at the tokens before a place, so in a block each place has its own prefix: the row's stream and the
proposals before the place. What the model computes, and so what is observed of it, is the same either way.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from transformers import GenerationConfig, PreTrainedModel

    from specaudit.decoders.rows import Row


class TokenChoice(Protocol):
    """The target's choice after a row's stream and after each proposal that follows it."""

    def choose(self, logits: Tensor, rows: Sequence[Row], proposals: Tensor | None = None) -> Tensor:
        """Return the tokens chosen, int64 [B, q].

        `logits` is [B, q, vocabulary]: those after the stream of `rows[b]`, then those after each of its `proposals`,
        int64 [B, q - 1] (None where q is 1).
        """
        ...


def token_choice(
    target: PreTrainedModel,
    generation_config: GenerationConfig | None,
    *,
    max_new_tokens: int,
    eos_token_ids: Collection[int],
) -> TokenChoice:
    """Return the choice for one decoder call: of raw logits, or with the processors of a generation config."""
    if generation_config is None:
        return RawChoice()
    return ProcessedChoice(target, generation_config, max_new_tokens=max_new_tokens, eos_token_ids=eos_token_ids)


class RawChoice:
    """Argmax of the raw logits."""

    def choose(self, logits: Tensor, rows: Sequence[Row], proposals: Tensor | None = None) -> Tensor:
        """Return the most likely tokens, int64 [B, q]."""
        return logits.argmax(-1)


class ProcessedChoice:
    """Argmax of logits that went through transformers' processors, as in `generate` at batch 1."""

    def __init__(
        self,
        target: PreTrainedModel,
        generation_config: GenerationConfig,
        *,
        max_new_tokens: int,
        eos_token_ids: Collection[int],
    ) -> None:
        """Process by `generation_config`; lengths and stop rules are those given here, not its own."""
        self.target = target
        self.generation_config = generation_config
        self.max_new_tokens = max_new_tokens
        self.eos_token_ids = eos_token_ids
        self._processors: dict[int, Any] = {}  # row index -> LogitsProcessorList

    def choose(self, logits: Tensor, rows: Sequence[Row], proposals: Tensor | None = None) -> Tensor:
        """Return the most likely tokens after processing, int64 [B, q]."""
        following = [[]] * len(rows) if proposals is None else proposals.tolist()
        chosen = [
            [self._choose_one(row, [*row.stream, *proposed[:place]], scores) for place, scores in enumerate(row_logits)]
            for row, proposed, row_logits in zip(rows, following, logits, strict=True)
        ]
        return torch.tensor(chosen, device=logits.device)

    def _choose_one(self, row: Row, prefix: list[int], scores: Tensor) -> int:
        processors = self._processors.get(row.index)
        if processors is None:
            processors = self._processors[row.index] = self._processors_for(row)
        input_ids = torch.tensor([prefix], device=scores.device)
        return int(processors(input_ids, scores[None].float()).argmax(-1))  # float32, as `generate` has it

    def _processors_for(self, row: Row) -> Any:
        target: Any = self.target
        config: Any = copy.deepcopy(self.generation_config)
        eos = sorted(self.eos_token_ids)
        config.eos_token_id = eos or None
        config._eos_token_tensor = torch.tensor(eos, device=self.target.device) if eos else None
        config.max_length = len(row.prompt) + self.max_new_tokens
        # The builder that `generate` itself calls: the same processors in the same order.
        return target._get_logits_processor(
            generation_config=config,
            input_ids_seq_length=len(row.prompt),
            encoder_input_ids=torch.tensor([list(row.prompt)], device=self.target.device),
            device=self.target.device,
            model_kwargs={},
        )
