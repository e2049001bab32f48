"""Oracle replay: one teacher-forced forward over prompt and output scores every emitted token at its own prefix.

In a causal model the logits at a place depend on what stands before it alone, so one parallel pass gives what the target
would have computed for each token in turn. Nothing of a decoder takes part: no cache, no draft, no step.
"""

from __future__ import annotations

import copy
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from specaudit.batch.cache import accepted_arguments
from specaudit.batch.padding import right_pad
from specaudit.core.scores import Replay, TokenScore
from specaudit.trace.premises import length_limit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import nn
    from transformers import PreTrainedModel

    from specaudit.batch.padding import RightPadded
    from specaudit.core.scores import PromptedOutput

TOKEN_BUDGET = 4096
"""Most tokens a forward, padding included, unless one sequence alone has more."""

LOGIT_BUDGET = 2**26
"""Most logits held at once (256 MiB in float32), unless one token alone has more."""


@dataclass(frozen=True, slots=True)
class _Place:
    """One emitted token within a chunk."""

    row: int
    """Row of the chunk."""

    column: int
    """Column of the token before it, whose logits judge it."""

    output: int
    """Index of its output in the call."""

    index: int
    """Index into the generated tokens."""

    token_id: int
    """The token."""


def replay(
    model: PreTrainedModel,
    outputs: Sequence[PromptedOutput],
    *,
    pad_token_id: int,
    dtype: torch.dtype | None = None,
    token_budget: int = TOKEN_BUDGET,
    logit_budget: int = LOGIT_BUDGET,
) -> tuple[Replay, ...]:
    """Score every token of `outputs`, in their order, by the argmax of the model's raw logits.

    Rows are right-padded, with explicit mask and positions, no cache, in evaluation mode; sequences of like length go
    together. Memory is bounded by the budgets, whatever the number of outputs: logits are computed where a token was
    emitted and nowhere else. The model is left as it was found. Not for the inside of a trace, which would take the
    replay's forwards for a decoder's.

    Args:
        model: the target.
        outputs: what to score.
        pad_token_id: id to fill rows up with; it decides nothing.
        dtype: type to compute in, or None for the model's own. Another one costs a copy of the model in every call;
            where there are several calls, make it once with `copy_in`.
        token_budget: most tokens a forward, padding included.
        logit_budget: most logits held at once.

    An output whose logits are not numbers, or whose length changes how the model encodes positions, has an `error`.

    Raises ValueError for a prompt without a token, and for ids outside the vocabulary.
    """
    _check(model, outputs)
    scored = model if dtype is None else copy_in(model, dtype)
    limit = length_limit(scored)
    errors = {
        number: f"the model's position encoding depends on the length beyond {limit} tokens"
        for number, output in enumerate(outputs)
        if limit is not None and _length(output) > limit
    }
    todo = [number for number, output in enumerate(outputs) if output.output_ids and number not in errors]
    scores: dict[int, list[TokenScore]] = {}
    with torch.inference_mode(), _evaluation_mode(scored):
        for chunk in _chunks(outputs, todo, token_budget, logit_budget // _vocabulary_size(scored)):
            _score_chunk(scored, outputs, chunk, pad_token_id, logit_budget, scores)
    return tuple(_finished(scores.get(number, []), errors.get(number)) for number in range(len(outputs)))


def copy_in(model: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
    """Return the model computing in `dtype`: itself where it does already, else a copy with the same weights."""
    if model.dtype == dtype:
        return model
    copied: PreTrainedModel = copy.deepcopy(model).to(dtype)  # type: ignore[arg-type]
    return copied


def machine_epsilon(*models: PreTrainedModel) -> float:
    """Return the spacing of numbers above 1 in the coarsest of the models' types."""
    return max(float(torch.finfo(model.dtype).eps) for model in models)


def _check(model: PreTrainedModel, outputs: Sequence[PromptedOutput]) -> None:
    embedding: Any = model.get_input_embeddings()
    known = min(int(embedding.weight.shape[0]), _vocabulary_size(model))
    for number, output in enumerate(outputs):
        if not output.prompt_ids:
            raise ValueError(f"output {number} has an empty prompt: nothing predicts its first token")
        bad = next((one for one in (*output.prompt_ids, *output.output_ids) if not 0 <= one < known), None)
        if bad is not None:
            raise ValueError(f"output {number} holds id {bad}, outside the vocabulary of {known}")


def _finished(scores: Sequence[TokenScore], error: str | None) -> Replay:
    """Return what is said of one output; logits that are not numbers leave nothing to say."""
    if not all(isfinite(score.largest_logit) for score in scores):
        error = "the target's logits are not numbers"
    return Replay(scores=() if error else tuple(scores), error=error)


def _length(output: PromptedOutput) -> int:
    """Return the tokens that are fed: the last one emitted is judged, and predicts nothing."""
    return len(output.prompt_ids) + len(output.output_ids) - 1


def _chunks(
    outputs: Sequence[PromptedOutput], todo: Sequence[int], token_budget: int, place_budget: int
) -> Iterator[list[int]]:
    """Yield the numbers in `todo` in groups within the budgets, longest sequences first, at least one a group."""
    chunk: list[int] = []
    places = 0
    for number in sorted(todo, key=lambda number: -_length(outputs[number])):
        emitted = len(outputs[number].output_ids)
        width = _length(outputs[chunk[0]]) if chunk else 0
        if chunk and ((len(chunk) + 1) * width > token_budget or places + emitted > place_budget):
            yield chunk
            chunk, places = [], 0
        chunk.append(number)
        places += emitted
    if chunk:
        yield chunk


def _score_chunk(
    model: PreTrainedModel,
    outputs: Sequence[PromptedOutput],
    chunk: Sequence[int],
    pad_token_id: int,
    logit_budget: int,
    scores: dict[int, list[TokenScore]],
) -> None:
    """Add the scores of one chunk; where one output's logits exceed the budget, its forward is repeated."""
    rows = [[*outputs[number].prompt_ids, *outputs[number].output_ids[:-1]] for number in chunk]
    padded = right_pad(rows, pad_token_id=pad_token_id, device=model.device)
    places = [
        _Place(row, len(outputs[number].prompt_ids) - 1 + index, number, index, token_id)
        for row, number in enumerate(chunk)
        for index, token_id in enumerate(outputs[number].output_ids)
    ]
    step = max(1, logit_budget // _vocabulary_size(model))
    for start in range(0, len(places), step):
        block = places[start : start + step]
        for place, score in zip(block, _score(_logits_at(model, padded, block), block), strict=True):
            scores.setdefault(place.output, []).append(score)


def _score(logits: Tensor, places: Sequence[_Place]) -> list[TokenScore]:
    """Return the scores of tokens by their logits [N, vocabulary]; maxima are compared in the logits' own type."""
    token_ids = torch.tensor([place.token_id for place in places], device=logits.device)
    own = logits.gather(1, token_ids[:, None])  # [N, 1]
    top, top_ids = logits.topk(2, dim=-1)  # [N, 2]
    ranks = (logits > own).sum(-1)
    columns = zip(
        places, top_ids.tolist(), ranks.tolist(), top.tolist(), own[:, 0].tolist(), strict=True
    )  # lists hold Python's floats: float64
    return [
        TokenScore(
            index=place.index,
            token_id=place.token_id,
            argmax_id=argmax_id,
            rank=rank,
            regret=largest_logit - own_logit,
            largest_logit=largest_logit,
            runner_up_id=runner_up_id,
            runner_up_logit=runner_up_logit,
        )
        for place, (argmax_id, runner_up_id), rank, (largest_logit, runner_up_logit), own_logit in columns
    ]


def _logits_at(model: PreTrainedModel, padded: RightPadded, places: Sequence[_Place]) -> Tensor:
    """Run a forward and return its logits at `places`, [N, vocabulary]."""
    rows = torch.tensor([place.row for place in places], device=model.device)
    columns = torch.tensor([place.column for place in places], device=model.device)
    arguments: dict[str, Any] = {
        "input_ids": padded.input_ids,
        "attention_mask": padded.attention_mask,
        "use_cache": False,
        "return_dict": True,
    }
    if "position_ids" in accepted_arguments(model):
        arguments["position_ids"] = padded.position_ids
    with _head_fed_with(model, rows, columns, padded.input_ids.shape) as selection:
        logits: Tensor = model(**arguments).logits
    return logits[0] if selection.was_made else logits[rows, columns]


class _Selection:
    """Whether the head was fed the wanted places alone."""

    was_made = False


@contextmanager
def _head_fed_with(model: PreTrainedModel, rows: Tensor, columns: Tensor, shape: torch.Size) -> Iterator[_Selection]:
    """Let the head see the wanted places only, [1, N, hidden], for the length of the block.

    What a model does to its logits after the head (a scale, a soft cap) works element by element and follows as usual. A
    head that is not called as a module on [B, L, hidden] gets everything, and the caller selects afterwards.
    """
    selection = _Selection()
    head: nn.Module | None = model.get_output_embeddings()  # type: ignore[no-untyped-call]

    def select(module: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
        states = arguments[0] if arguments else None
        if not isinstance(states, Tensor) or states.dim() != 3 or states.shape[:2] != shape:
            return None
        selection.was_made = True
        return (states[rows, columns][None], *arguments[1:])

    handle = None if head is None else head.register_forward_pre_hook(select)
    try:
        yield selection
    finally:
        if handle is not None:
            handle.remove()


@contextmanager
def _evaluation_mode(model: PreTrainedModel) -> Iterator[None]:
    modes = [(module, module.training) for module in model.modules()]
    model.eval()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _vocabulary_size(model: PreTrainedModel) -> int:
    """Return the width of the logits."""
    head: Any = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    return int(model.config.get_text_config().vocab_size if head is None else head.weight.shape[0])
