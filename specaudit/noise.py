"""What rounding may excuse in a run: the noise floor of its shapes, and how far an output strays from the target's choice.

Two sound decoders that compute in other shapes round differently. How much is measured, in the shapes and the type of the
arm under audit: the reference, one row at a time; greedy decoding in batches; and speculation with the target as its own
draft, which reads K + 1 tokens a row. Controls are watched like every decoder; one that is not right gives no floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from specaudit.checks.judgement import judge
from specaudit.checks.streams import trace_streams
from specaudit.core.scores import Control, PromptedOutput, Zone
from specaudit.core.vocabulary import Sync
from specaudit.decoders import eqspec, greedy, greedy_batch
from specaudit.oracle.floor import zone
from specaudit.oracle.judgement import judge_controls
from specaudit.oracle.replay import replay
from specaudit.trace.growth import grow
from specaudit.trace.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from specaudit.core.scores import Replay, TokenScore
    from specaudit.models.loaded import LoadedModel
    from specaudit.trace.records import Trace
    from specaudit.trace.trie import PrefixTrie, Reading

CONTROL_PROMPTS = 16
"""Most prompts that a control decodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excuse:
    """How far an output strays from what the target chooses, and whether rounding explains that."""

    regret: float
    """Largest regret of its tokens, in logits."""

    place: int
    """Output token that has it."""

    zone: Zone | None
    """What it may be put down to, or None where there is no floor."""

    control: Control
    """The floor that it is held against."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gap:
    """The two largest logits where a control chose a token, if they were seen."""

    top_ids: tuple[int, int] | None
    width: float
    """The first minus the second, in logits."""

    def moved(self, score: TokenScore) -> float | None:
        """Return by how much the oracle has the two logits closer or further apart, or None where it has two others."""
        if self.top_ids is None or score.runner_up_logit is None or score.runner_up_id is None:
            return None
        width = score.largest_logit - score.runner_up_logit
        pair = (score.argmax_id, score.runner_up_id)
        if self.top_ids == pair:
            return abs(self.width - width)
        return self.width + width if self.top_ids == pair[::-1] else None


def _gaps(trace: Trace, trie: PrefixTrie, prompt: Sequence[int], output: Sequence[int]) -> list[_Gap]:
    """Return a gap for each token of an output, from the first clean query that read its prefix."""
    gaps, node = [], trie.find(prompt)
    for token in output:
        readings = [] if node is None else trie.readings[node]
        gaps.append(_gap(trace, readings[0]) if readings else _Gap(top_ids=None, width=0.0))
        node = None if node is None else trie.children.get((node, token))
    return gaps


def _gap(trace: Trace, reading: Reading) -> _Gap:
    step = trace.steps[reading.step]
    if step.top_ids is None or step.top_logits is None or not reading.top_ids:
        return _Gap(top_ids=None, width=0.0)
    first, second = step.top_ids[reading.row, reading.query].tolist()
    largest, next_largest = step.top_logits[reading.row, reading.query].tolist()
    return _Gap(top_ids=(first, second), width=largest - next_largest)


class Noise:
    """Measures floors as they are needed, once for each shape."""

    def __init__(
        self,
        target: LoadedModel,
        *,
        max_new_tokens: int,
        eos_token_ids: frozenset[int],
        references: Mapping[tuple[int, ...], tuple[int, ...]],
    ) -> None:
        """Measure nothing yet; `references` maps prompts to the reference's outputs and is read when a floor is needed."""
        self.target = target
        self.max_new_tokens = max_new_tokens
        self.eos_token_ids = eos_token_ids
        self._controls: dict[tuple[int, int], Control] = {}
        self._unreported: list[Control] = []
        self._references = references

    def excuse(
        self, prompt_ids: tuple[int, ...], output_ids: tuple[int, ...], *, batch_size: int, draft_tokens: int
    ) -> Excuse | None:
        """Return how far an output strays from the target's choices, or None where the target cannot score it."""
        (scored,) = self._replay([PromptedOutput(prompt_ids=prompt_ids, output_ids=output_ids)])
        if scored.error is not None or not scored.scores:
            return None
        control = self.control(batch_size, draft_tokens)
        worst = max(scored.scores, key=lambda score: score.regret)
        return Excuse(
            regret=worst.regret,
            place=worst.index,
            zone=None if control.floor is None else zone(worst.regret, control.floor),
            control=control,
        )

    def control(self, batch_size: int, draft_tokens: int) -> Control:
        """Return the floor of a shape, measured at the first call."""
        key = batch_size, draft_tokens
        if key not in self._controls:
            self._controls[key] = self._measure(batch_size, draft_tokens)
            self._unreported.append(self._controls[key])
        return self._controls[key]

    def take_unreported(self) -> tuple[Control, ...]:
        """Return the floors measured since the last call."""
        taken, self._unreported = tuple(self._unreported), []
        return taken

    def _measure(self, batch_size: int, draft_tokens: int) -> Control:
        prompts = self._control_prompts()
        outputs: list[PromptedOutput] = []
        gaps: list[list[_Gap]] = []
        problem = None
        for name, decode, size in (
            ("greedy", greedy.decode, 1),
            ("greedy-batch", greedy_batch.decode, batch_size),
            ("speculation with the target as its own draft", eqspec.decode, batch_size),
        ):
            made, seen, found = self._decode(decode, prompts, size, draft_tokens)
            outputs += made
            gaps += seen
            problem = problem or (None if found is None else f"control '{name}': {found}")
        replays = self._replay(outputs)
        moved = [
            gap.moved(score)
            for scored, of_output in zip(replays, gaps, strict=True)
            for score, gap in zip(scored.scores, of_output, strict=True)
        ]
        resolution = max((one for one in moved if one is not None), default=0.0)
        judged = judge_controls(replays, eos_token_ids=self.eos_token_ids, resolution=resolution)
        problem = problem or judged.problem
        floor = None if problem else judged.floor
        return Control(batch_size=batch_size, draft_tokens=draft_tokens, floor=floor, problem=problem)

    def _control_prompts(self) -> list[tuple[int, ...]]:
        """Return prompts spread over the set, those with a reference."""
        usable = [prompt for prompt, output in self._references.items() if output]
        step = max(1, -(-len(usable) // CONTROL_PROMPTS))
        return usable[::step]

    def _decode(
        self, decode: Callable[..., list[list[int]]], prompts: Sequence[tuple[int, ...]], size: int, draft_tokens: int
    ) -> tuple[list[PromptedOutput], list[list[_Gap]], str | None]:
        """Return a control's outputs, the gap between the two largest logits at each token, and what is wrong or None."""
        outputs: list[PromptedOutput] = []
        gaps: list[list[_Gap]] = []
        problem = None
        for first in range(0, len(prompts), size):
            batch = prompts[first : first + size]
            with Recorder(self.target.model) as recorder:
                made = decode(
                    self.target.model,
                    self.target.model,
                    self.target.tokenizer,
                    [list(prompt) for prompt in batch],
                    max_new_tokens=self.max_new_tokens,
                    draft_tokens=draft_tokens,
                    eos_token_ids=set(self.eos_token_ids),
                    pad_token_id=self.target.pad_token_id,
                )
            trie = grow(recorder.trace)
            gaps += [_gaps(recorder.trace, trie, prompt, output) for prompt, output in zip(batch, made, strict=True)]
            for judgement in judge(recorder.trace, trace_streams(recorder.trace, batch, made), trie=trie):
                if judgement.sync is Sync.VIOLATED and problem is None:
                    problem = judgement.findings[0].message
            references = [list(self._references[prompt]) for prompt in batch]
            if decode is greedy.decode and made != references and problem is None:
                problem = "decoding the same prompt again gives another output"
            pairs = zip(batch, made, strict=True)
            outputs += [PromptedOutput(prompt_ids=prompt, output_ids=tuple(output)) for prompt, output in pairs]
        return outputs, gaps, problem

    def _replay(self, outputs: Sequence[PromptedOutput]) -> tuple[Replay, ...]:
        with torch.inference_mode():
            return replay(self.target.model, outputs, pad_token_id=self.target.pad_token_id)


def draft_choice_of(draft: Any) -> Callable[[Sequence[int]], int | None]:
    """Return a function from a prefix to the token that a draft model would propose after it; None where it cannot say."""

    def choose(prefix: Sequence[int]) -> int | None:
        if not isinstance(draft, torch.nn.Module) or not prefix:
            return None
        try:
            with torch.inference_mode():
                ids = torch.tensor([list(prefix)], device=next(draft.parameters()).device)
                return int(draft(input_ids=ids, use_cache=False).logits[0, -1].argmax())
        except Exception:  # a draft of any make; without its answer a cause is less exact
            return None

    return choose
