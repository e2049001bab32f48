"""The runner: from a plan to events. It neither prints nor writes files."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from specaudit.checks.judgement import judge
from specaudit.checks.streams import trace_streams
from specaudit.core.comparison import first_divergence, partial_match
from specaudit.core.errors import InputError, UsageError
from specaudit.core.events import (
    CallFinished,
    Event,
    ReferenceDecoded,
    RunFinished,
    RunStarted,
    UnitFinished,
    UnitStarted,
)
from specaudit.core.records import UNIT_BATCHES, CaseResult, ModelRecord, UnitTiming, case_id
from specaudit.core.vocabulary import Sync, Verdict
from specaudit.decoders.drafting import StressDraft
from specaudit.decoders.registry import DraftNeed
from specaudit.decoders.resolution import ResolvedDecoder, resolve_decoder
from specaudit.isolation import isolated, weight_versions
from specaudit.models.drafts import StressDraft as StressRecipe
from specaudit.models.loading import load_pair
from specaudit.models.options import LoadOptions
from specaudit.models.rendering import render
from specaudit.models.source import parse_source
from specaudit.outputs import UnusableOutputError, read_outputs
from specaudit.prompts import PromptSet, load_prompts
from specaudit.reference import Reference, ids_digest
from specaudit.settings import ignored_settings, position_limit
from specaudit.trace.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from specaudit.core.records import Arm, AuditPlan
    from specaudit.models.loaded import LoadedModel, ModelPair
    from specaudit.trace.records import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptCase:
    """A prompt ready to be decoded, with what the reference made of it."""

    prompt_id: str
    """Identifier in its set."""

    category: str | None
    """Category, or None."""

    prompt_ids: tuple[int, ...]
    """Token ids."""

    reference_ids: tuple[int, ...]
    """Token ids that the reference generated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which part of a plan is run; by default all of it."""

    done: frozenset[tuple[Arm, int]] = frozenset()
    """Units of arms that an earlier process finished: left out."""

    done_ids: frozenset[int] = frozenset()
    """Token ids that those units generated."""

    only: tuple[Arm, int, int] | None = None
    """The one call to run, as arm, unit and call, or None for all."""

    def takes_unit(self, arm: Arm, unit: int) -> bool:
        """Return whether a unit is run."""
        return (arm, unit) not in self.done and (self.only is None or self.only[:2] == (arm, unit))

    def takes_call(self, call: int) -> bool:
        """Return whether a call of a unit that is run is made."""
        return self.only is None or self.only[2] == call


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """What one decoder call gave."""

    outputs: list[tuple[int, ...]] | None
    error: str | None
    trace: Trace
    seconds: float


def run_audit(plan: AuditPlan, *, selection: Selection | None = None) -> Iterator[Event]:
    """Load what the plan names, decode the reference, then every arm unit by unit; yield what happens.

    With a `selection`, only the units and calls that it takes are run, composed as planned. Raises SpecauditError for a
    plan that cannot be carried out, before anything is decoded. A decoder that fails makes its cases unmeasured and the
    run goes on.
    """
    parse_source(plan.target, role="target", revision=plan.revision)
    decoders = [resolve_decoder(name) for name in plan.decoders]
    _check_draft(plan, decoders)
    prompt_set = load_prompts(plan.prompts, field=plan.prompt_field, limit=plan.limit)
    if plan.threads is not None:
        torch.set_num_threads(plan.threads)
    pair = load_pair(plan.target, plan.draft, options=_load_options(plan))
    yield from Audit(plan, decoders, prompt_set, pair, selection or Selection()).events()


class Audit:
    """One run with everything loaded."""

    def __init__(
        self,
        plan: AuditPlan,
        decoders: Sequence[ResolvedDecoder],
        prompt_set: PromptSet,
        pair: ModelPair,
        selection: Selection,
    ) -> None:
        """Render the prompts; raise InputError for one that the target cannot take."""
        self.plan = plan
        self.selection = selection
        self.decoders = {decoder.name: decoder for decoder in decoders}
        self.pair = pair
        self.target = pair.target
        self.eos_token_ids = self.target.eos_token_ids if plan.eos_token_ids is None else frozenset(plan.eos_token_ids)
        _check_eos_ids(self.eos_token_ids, self.target.vocab_size)
        self.prompt_set = _usable_prompts(prompt_set, self.target)
        self.rendered = [
            tuple(render(prompt, self.target.tokenizer, chat_template=plan.chat_template))
            for prompt in self.prompt_set.prompts
        ]
        self._check_lengths()
        self.cases: list[PromptCase] = []
        self.draft: Any = None
        self.generated_ids = set(selection.done_ids)
        self.weights = weight_versions(self.target.model)

    def events(self) -> Iterator[Event]:
        """Yield the events of the run."""
        arms = self.plan.arms()
        yield RunStarted(
            plan=self.plan,
            target=self._target_record(),
            draft=self._draft_record(),
            prompt_set=self.prompt_set.name,
            prompt_set_digest=self.prompt_set.digest,
            prompt_ids=tuple(prompt.prompt_id for prompt in self.prompt_set.prompts),
            planned_cases=self._planned_cases(arms),
        )
        yield from self._decode_reference()
        self.draft = self._make_draft()
        for arm in arms:
            size = UNIT_BATCHES * arm.batch_size
            for unit, first in enumerate(range(0, len(self.cases), size)):
                if self.selection.takes_unit(arm, unit):
                    yield from self._run_unit(arm, unit, self.cases[first : first + size])
        yield RunFinished(token_texts=self._token_texts())

    def _planned_cases(self, arms: Sequence[Arm]) -> int:
        if self.selection.only is None:
            return len(arms) * len(self.prompt_set.prompts)
        arm, unit, call = self.selection.only
        size, step = UNIT_BATCHES * arm.batch_size, self._call_size(arm)
        in_unit = len(self.prompt_set.prompts[unit * size : (unit + 1) * size])
        return min(step, in_unit - call * step)

    def _call_size(self, arm: Arm) -> int:
        """Return how many prompts a decoder is given at once."""
        return UNIT_BATCHES * arm.batch_size if self.decoders[arm.decoder].takes_batch_size else arm.batch_size

    def _decode_reference(self) -> Iterator[Event]:
        reference = Reference(self.target, max_new_tokens=self.plan.max_new_tokens, eos_token_ids=self.eos_token_ids)
        for prompt, prompt_ids in zip(self.prompt_set.prompts, self.rendered, strict=True):
            output = reference.decode(prompt_ids)
            self.generated_ids.update(output.output_ids)
            self.cases.append(
                PromptCase(
                    prompt_id=prompt.prompt_id,
                    category=prompt.category,
                    prompt_ids=prompt_ids,
                    reference_ids=output.output_ids,
                )
            )
            yield ReferenceDecoded(
                prompt_id=prompt.prompt_id, done=len(self.cases), total=len(self.rendered), cached=output.cached
            )

    def _run_unit(self, arm: Arm, unit: int, cases: Sequence[PromptCase]) -> Iterator[Event]:
        yield UnitStarted(arm=arm, unit=unit, cases=len(cases))
        decoder = self.decoders[arm.decoder]
        size = self._call_size(arm)
        results: list[CaseResult] = []
        seconds = 0.0
        for number, first in enumerate(range(0, len(cases), size)):
            if not self.selection.takes_call(number):
                continue
            batch = cases[first : first + size]
            call = self._call(decoder, arm, batch)
            seconds += call.seconds
            results += self._judge(arm, unit, number, batch, call)
            yield CallFinished(cases=len(batch))
        yield UnitFinished(
            results=tuple(results),
            timing=UnitTiming(
                decoder=arm.decoder,
                batch_size=arm.batch_size,
                draft_tokens=arm.draft_tokens,
                unit=unit,
                seconds=seconds,
                generated_tokens=sum(len(result.output_ids or ()) for result in results),
            ),
        )

    def _call(self, decoder: ResolvedDecoder, arm: Arm, cases: Sequence[PromptCase]) -> _Call:
        options: dict[str, Any] = {
            "max_new_tokens": self.plan.max_new_tokens,
            "draft_tokens": arm.draft_tokens,
            "eos_token_ids": set(self.eos_token_ids),
            "pad_token_id": self.target.pad_token_id,
        }
        if decoder.takes_batch_size:
            options["batch_size"] = arm.batch_size
        recorder = Recorder(self.target.model, seed=self.plan.seed)
        outputs, error = None, None
        if weight_versions(self.target.model) != self.weights:
            return _Call(
                outputs=None, error="an earlier decoder changed the target's weights", trace=recorder.trace, seconds=0
            )
        prompts = [list(case.prompt_ids) for case in cases]
        started = time.perf_counter()
        with isolated(self._models(), self.target.tokenizer, seed=self.plan.seed), recorder:
            try:
                returned = decoder.function(self.target.model, self.draft, self.target.tokenizer, prompts, **options)
                outputs = read_outputs(returned, count=len(cases), vocabulary_size=self.target.vocab_size)
            except UnusableOutputError as unusable:
                error = str(unusable)
            except (Exception, SystemExit) as failure:
                error = _one_line(failure)
        seconds = time.perf_counter() - started
        if weight_versions(self.target.model) != self.weights:
            outputs, error = None, "the decoder changed the target's weights"
        return _Call(outputs=outputs, error=error, trace=recorder.trace, seconds=seconds)

    def _judge(self, arm: Arm, unit: int, number: int, cases: Sequence[PromptCase], call: _Call) -> list[CaseResult]:
        outputs: Sequence[tuple[int, ...] | None] = call.outputs or [None] * len(cases)
        streams = trace_streams(call.trace, [case.prompt_ids for case in cases], [output or () for output in outputs])
        results = []
        for case, output, stream in zip(cases, outputs, streams, strict=True):
            judgement = judge(call.trace, stream)
            self.generated_ids.update(output or ())
            divergence = None if output is None else first_divergence(case.reference_ids, output)
            verdict = Verdict.UNMEASURED
            if output is not None:
                verdict = Verdict.IDENTICAL if divergence is None else Verdict.DIVERGED
            is_seen = judgement.sync is not Sync.UNOBSERVED
            results.append(
                CaseResult(
                    case_id=case_id(arm, case.prompt_id),
                    decoder=arm.decoder,
                    batch_size=arm.batch_size,
                    draft_tokens=arm.draft_tokens,
                    unit=unit,
                    call=number,
                    prompt_id=case.prompt_id,
                    prompt_digest=ids_digest(case.prompt_ids),
                    category=case.category,
                    prompt_ids=case.prompt_ids,
                    reference_ids=case.reference_ids,
                    output_ids=output,
                    reference_text=self._text(case.reference_ids),
                    output_text=None if output is None else self._text(output),
                    verdict=verdict,
                    sync=judgement.sync,
                    sync_reason=judgement.reason,
                    findings=judgement.findings,
                    first_divergence=divergence,
                    partial_match=None if output is None else partial_match(case.reference_ids, output),
                    proposed_tokens=stream.proposed_tokens if is_seen else None,
                    accepted_tokens=stream.accepted_tokens if is_seen else None,
                    target_steps=stream.steps if is_seen else None,
                    error=call.error,
                )
            )
        return results

    def _make_draft(self) -> Any:
        draft = self.pair.draft
        if isinstance(draft, StressRecipe):
            references = {case.prompt_ids: case.reference_ids for case in self.cases}
            return StressDraft(references, rate=draft.rate, seed=draft.seed, vocabulary_size=self.target.vocab_size)
        return None if draft is None else draft.model

    def _models(self) -> list[Any]:
        draft = self.pair.draft
        if draft is None or isinstance(draft, StressRecipe):
            return [self.target.model]
        return [self.target.model, draft.model]

    def _check_lengths(self) -> None:
        limit = position_limit(self.target.model)
        if limit is None:
            return
        longest_draft = max(self.plan.draft_tokens)
        for prompt, prompt_ids in zip(self.prompt_set.prompts, self.rendered, strict=True):
            needed = len(prompt_ids) + self.plan.max_new_tokens + longest_draft
            if needed > limit:
                raise InputError(
                    f"prompt '{prompt.prompt_id}' needs {needed} positions "
                    f"({len(prompt_ids)} prompt + {self.plan.max_new_tokens} new + {longest_draft} draft tokens), "
                    f"the target has {limit}",
                    where=prompt.source,
                    way_out="shorten the prompt, lower --max-new-tokens, or take another target.",
                )

    def _text(self, ids: Sequence[int]) -> str:
        return str(self.target.tokenizer.decode(list(ids), skip_special_tokens=False))

    def _token_texts(self) -> dict[int, str]:
        """Return the text of each token that the reference or a candidate generated."""
        anchor = self.target.tokenizer("a", add_special_tokens=False)["input_ids"][-1:]
        before = len(self._text(anchor))  # tokenizers that strip a leading space do so here, not from the token
        return {token: self._text([*anchor, token])[before:] for token in sorted(self.generated_ids)}

    def _target_record(self) -> ModelRecord:
        return _model_record(self.target, eos_token_ids=self.eos_token_ids)

    def _draft_record(self) -> ModelRecord | None:
        draft = self.pair.draft
        if draft is None:
            return None
        if isinstance(draft, StressRecipe):
            return ModelRecord(
                source=f"stress:{draft.rate:g}",
                digest=None,
                architecture="reference with replaced tokens",
                parameters=0,
                dtype="none",
                device="none",
                attn="none",
                eos_token_ids=(),
                pad_token_id=self.target.pad_token_id,
                ignored_settings=(),
            )
        return _model_record(draft, eos_token_ids=self.eos_token_ids)


def _model_record(loaded: LoadedModel, *, eos_token_ids: frozenset[int]) -> ModelRecord:
    return ModelRecord(
        source=loaded.source,
        digest=loaded.digest,
        architecture=type(loaded.model).__name__,
        parameters=sum(parameter.numel() for parameter in loaded.model.parameters()),
        dtype=str(loaded.dtype).removeprefix("torch."),
        device=str(loaded.device),
        attn=loaded.attn,
        eos_token_ids=tuple(sorted(eos_token_ids)),
        pad_token_id=loaded.pad_token_id,
        ignored_settings=ignored_settings(loaded.model),
    )


def _load_options(plan: AuditPlan) -> LoadOptions:
    return LoadOptions(
        dtype=plan.dtype,
        device=plan.device or "auto",
        attn=plan.attn,
        revision=plan.revision,
        draft_revision=plan.draft_revision,
        trust_remote_code=plan.trust_remote_code,
        allow_pickle=plan.allow_pickle,
        seed=plan.seed,
    )


def _check_draft(plan: AuditPlan, decoders: Sequence[ResolvedDecoder]) -> None:
    """Refuse a draft that a decoder cannot use, and a missing one, before anything is loaded."""
    needing = [decoder for decoder in decoders if decoder.draft is not DraftNeed.NONE]
    has_default = plan.target.startswith("bundled:")
    if needing and plan.draft is None and not has_default:
        raise UsageError(
            f"decoder '{needing[0].name}' needs a draft",
            where="--draft",
            way_out="name a model, or derive one: --draft noisy:0.12, layers:N or stress:0.4.",
        )
    is_stress = plan.draft is not None and plan.draft.startswith("stress:")
    modular = [decoder for decoder in decoders if decoder.draft is DraftNeed.MODULE]
    if is_stress and modular:
        raise UsageError(
            f"decoder '{modular[0].name}' needs a draft model, '{plan.draft}' is none",
            where="--draft",
            way_out="use --draft noisy:0.12 or layers:N: a real model at any acceptance.",
        )


def _check_eos_ids(eos_token_ids: frozenset[int], vocabulary_size: int) -> None:
    outside = sorted(token for token in eos_token_ids if not 0 <= token < vocabulary_size)
    if outside:
        raise UsageError(
            f"EOS id {outside[0]} is not in the target's vocabulary of {vocabulary_size}",
            where="--eos-ids",
            way_out="give ids below the vocabulary size, or --ignore-eos.",
        )


def _usable_prompts(prompt_set: PromptSet, target: LoadedModel) -> PromptSet:
    """Leave the chats out of the bundled set where the target has no chat template; a user's own set is kept whole."""
    has_template = getattr(target.tokenizer, "chat_template", None) is not None
    return prompt_set if has_template or prompt_set.name != "bundled" else prompt_set.without_chats()


def _one_line(failure: BaseException) -> str:
    text = " ".join(str(failure).split())
    return f"{type(failure).__name__}: {text[:300]}" if text else type(failure).__name__
