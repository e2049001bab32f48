"""The runner: from a plan to events. It neither prints nor writes files."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from specaudit.call_timeout import CallTimedOutError, call_timeout, check_timeout_is_possible
from specaudit.canary import Canary
from specaudit.case_judging import CaseJudge
from specaudit.core.errors import DecoderError, InputError, UsageError
from specaudit.core.events import (
    CallFinished,
    Event,
    FloorMeasured,
    ReferenceDecoded,
    RunFinished,
    RunStarted,
    UnitFinished,
    UnitStarted,
)
from specaudit.core.evidence import CaseEvidence, token_ids_of
from specaudit.core.records import UNIT_BATCHES, CaseResult, ModelRecord, UnitTiming
from specaudit.core.vocabulary import Compared, TraceMode
from specaudit.decoder_call import DecoderCall, PromptCase
from specaudit.decoders.registry import BUILT_IN
from specaudit.decoders.resolution import ResolvedDecoder, check_decoder_name, resolve_decoder, source_digest
from specaudit.draft_supply import DraftSupply, drafter_record
from specaudit.isolation import isolated
from specaudit.models.loaded import LoadedModel
from specaudit.models.loading import load_pair
from specaudit.models.options import LoadOptions
from specaudit.models.rendering import render
from specaudit.models.source import parse_source
from specaudit.noise import Noise
from specaudit.outputs import UnusableOutputError, read_outputs
from specaudit.planning import check_decoders, check_trace_mode, plan_arms
from specaudit.prompts import PromptSet, load_prompts
from specaudit.reference import Reference
from specaudit.second_turns import require_chat_template, with_first_answers
from specaudit.settings import generation_settings, greedy_config, position_limit, position_notices
from specaudit.text.tokenizer_vocabulary import vocabulary_of
from specaudit.threads import torch_threads
from specaudit.trace.recorder import Recorder, outer_layers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from specaudit.core.records import Arm, AuditPlan
    from specaudit.models.loaded import ModelPair
    from specaudit.planning import Arms


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


def run_audit(plan: AuditPlan, *, selection: Selection | None = None) -> Iterator[Event]:
    """Load what the plan names, decode the reference, then every arm unit by unit; yield what happens.

    With a `selection`, only the units and calls that it takes are run, composed as planned. Raises SpecauditError for a
    plan that cannot be carried out, before anything is decoded. A decoder that fails makes its cases unmeasured and the
    run goes on.
    """
    parse_source(plan.target, role="target", revision=plan.revision)
    check_timeout_is_possible(plan.case_timeout)
    check_trace_mode(plan.trace)
    own = [name for name in plan.decoders if name not in BUILT_IN]
    for name in own:
        check_decoder_name(name)
    planned = None if own else _resolve(plan)
    prompt_set = load_prompts(
        plan.prompts,
        field=plan.prompt_field,
        gold_field=plan.gold_field,
        turn=plan.turn,
        categories=plan.categories,
        sample=plan.sample,
        seed=plan.seed,
        limit=plan.limit,
    )
    pair = load_pair(plan.target, plan.draft, options=load_options(plan))
    with torch_threads(plan.threads, pair.target):
        canary = Canary([pair.target.model])
        decoders, arms = planned or _resolve(plan)
        if not canary.is_alive():
            raise DecoderError(
                f"importing {' or '.join(own)} changes what the target computes, and so the reference",
                where="--decoder",
                way_out="leave torch and transformers as they are at import; patch inside decode, and undo it there.",
            )
        audit = Audit(plan, decoders, arms, prompt_set, pair, selection or Selection(), canary)
        del pair  # so that a draft made anew for another seed takes the place of the first
        yield from audit.events()


def _resolve(plan: AuditPlan) -> tuple[list[ResolvedDecoder], Arms]:
    """Import the decoders of a plan, check that they can be run as planned, and return them with the arms."""
    decoders = [resolve_decoder(name) for name in plan.decoders]
    check_decoders(plan, decoders)
    return decoders, plan_arms(plan, decoders)


class Audit:
    """One run with everything loaded."""

    def __init__(
        self,
        plan: AuditPlan,
        decoders: Sequence[ResolvedDecoder],
        arms: Arms,
        prompt_set: PromptSet,
        pair: ModelPair,
        selection: Selection,
        canary: Canary,
    ) -> None:
        """Render the prompts; raise InputError for one that the target cannot take."""
        self.plan = plan
        self.selection = selection
        self.arms = arms
        self.decoders = {decoder.name: decoder for decoder in decoders}
        self.target = pair.target
        self.generation_config = greedy_config(pair.target.model) if plan.use_generation_config else None
        self.logits_are_processed = plan.use_generation_config and bool(generation_settings(pair.target.model))
        self.eos_token_ids = self.target.eos_token_ids if plan.eos_token_ids is None else frozenset(plan.eos_token_ids)
        _check_eos_ids(self.eos_token_ids, self.target.vocab_size)
        self.reference = Reference(
            self.target,
            max_new_tokens=plan.max_new_tokens,
            eos_token_ids=self.eos_token_ids,
            generation_config=self.generation_config,
        )
        self.vocabulary = vocabulary_of(
            self.target.tokenizer, eos_ids=self.eos_token_ids, pad_id=self.target.pad_token_id
        )
        self.prompt_set = _usable_prompts(prompt_set, self.target)
        self.rendered = self._rendered_prompts()
        if self.prompt_set.has_follow_ups:
            self.prompt_set = with_first_answers(self.prompt_set, self.rendered, self.reference)
            self.rendered = self._rendered_prompts()
        self.cases: list[PromptCase] = []
        self.references: dict[tuple[int, ...], tuple[int, ...]] = {}
        self.drafts = DraftSupply(pair, plan.draft, options=load_options(plan), references=self.references)
        self.judge = self._judge()
        self.draft_record = self._draft_record(pair)
        self.generated_ids = set(selection.done_ids)
        self.evidence: list[CaseEvidence] = []  # of the unit under way
        self.canary = canary
        self.culprit: str | None = None  # decoder that left the target computing something else

    def events(self) -> Iterator[Event]:
        """Yield the events of the run."""
        yield RunStarted(
            plan=self.plan,
            left_out=self.arms.left_out,
            target=self._target_record(),
            draft=self.draft_record,
            decoder_digests={name: source_digest(decoder.function) for name, decoder in self.decoders.items()},
            prompt_set=self.prompt_set.name,
            prompt_set_digest=self.prompt_set.digest,
            prompt_ids=tuple(prompt.prompt_id for prompt in self.prompt_set.prompts),
            planned_cases=self._planned_cases(),
            notices=position_notices(self.target.model, self._needed_positions()),
        )
        yield from self._decode_reference()
        for arm in self.arms.run:
            size = UNIT_BATCHES * arm.batch_size
            for unit, first in enumerate(range(0, len(self.cases), size)):
                if self.selection.takes_unit(arm, unit):
                    yield from self._run_unit(arm, unit, self.cases[first : first + size])
        yield RunFinished(token_texts=self._token_texts())

    def _judge(self) -> CaseJudge:
        noise = Noise(
            self.target,
            max_new_tokens=self.plan.max_new_tokens,
            eos_token_ids=self.eos_token_ids,
            references=self.references,
        )
        return CaseJudge(
            self.target,
            noise,
            max_new_tokens=self.plan.max_new_tokens,
            eos_token_ids=self.eos_token_ids,
            vocabulary=self.vocabulary,
            logits_are_processed=self.logits_are_processed,
        )

    def _planned_cases(self) -> int:
        if self.selection.only is None:
            return len(self.arms.run) * len(self.prompt_set.prompts)
        arm, unit, call = self.selection.only
        size, step = UNIT_BATCHES * arm.batch_size, self._call_size(arm)
        in_unit = len(self.prompt_set.prompts[unit * size : (unit + 1) * size])
        return min(step, in_unit - call * step)

    def _call_size(self, arm: Arm) -> int:
        """Return how many prompts a decoder is given at once."""
        return UNIT_BATCHES * arm.batch_size if self.decoders[arm.decoder].takes_batch_size else arm.batch_size

    def _decode_reference(self) -> Iterator[Event]:
        for prompt, prompt_ids in zip(self.prompt_set.prompts, self.rendered, strict=True):
            output = self.reference.decode(prompt_ids)
            self.generated_ids.update(output.output_ids)
            self.references[prompt_ids] = output.output_ids
            self.cases.append(
                PromptCase(
                    prompt_id=prompt.prompt_id,
                    category=prompt.category,
                    gold=prompt.gold,
                    prompt_ids=prompt_ids,
                    reference_ids=output.output_ids,
                    reference_error=output.error,
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
        self.evidence = []
        seconds = 0.0
        for number, first in enumerate(range(0, len(cases), size)):
            if not self.selection.takes_call(number):
                continue
            batch = cases[first : first + size]
            call = self._call(decoder, arm, batch)
            seconds += call.seconds
            results += self.judge.results(arm, unit, number, batch, call, draft=self.drafts.for_seed(arm.seed))
            self.generated_ids.update(token for output in call.outputs or () for token in _ids(output))
            self._keep_evidence(self.judge.take_evidence())
            yield CallFinished(cases=len(batch))
        for control in self.judge.noise.take_unreported():
            yield FloorMeasured(control=control)
        yield UnitFinished(
            results=tuple(results),
            timing=UnitTiming(
                decoder=arm.decoder,
                batch_size=arm.batch_size,
                draft_tokens=arm.draft_tokens,
                seed=arm.seed,
                unit=unit,
                seconds=seconds,
                generated_tokens=_generated_tokens(results),
            ),
            evidence=tuple(self.evidence),
        )

    def _call(self, decoder: ResolvedDecoder, arm: Arm, cases: Sequence[PromptCase]) -> DecoderCall:
        options: dict[str, Any] = {
            "max_new_tokens": self.plan.max_new_tokens,
            "draft_tokens": arm.draft_tokens or self.plan.draft_tokens[0],
            "eos_token_ids": set(self.eos_token_ids),
            "pad_token_id": self.target.pad_token_id,
        }
        if decoder.takes_batch_size:
            options["batch_size"] = arm.batch_size
        if decoder.takes_generation_config:
            options["generation_config"] = copy.deepcopy(self.generation_config)
        seed = self.plan.seed if arm.seed is None else arm.seed
        draft = self.drafts.for_seed(arm.seed)
        models = [self.target.model, *self.drafts.models()]
        recorder = self._recorder()
        outputs, error = None, None
        if self.culprit is not None:
            error = f"decoder '{self.culprit}' had left the target computing something else"
            return DecoderCall(outputs=None, error=error, trace=recorder.trace, seconds=0)
        drafts = Canary(self.drafts.models())
        prompts = [list(case.prompt_ids) for case in cases]
        started = time.perf_counter()
        with isolated(models, self.target.tokenizer, seed=seed), recorder:
            try:
                with call_timeout(self.plan.case_timeout):
                    returned = decoder.function(self.target.model, draft, self.target.tokenizer, prompts, **options)
                outputs = read_outputs(returned, count=len(cases), vocabulary_size=self.target.vocab_size)
            except UnusableOutputError as unusable:
                error = str(unusable)
            except CallTimedOutError as late:
                error = str(late)
            except KeyboardInterrupt:
                raise
            except BaseException as failure:  # also SystemExit and what frameworks cancel tasks with
                error = _one_line(failure)
        seconds = time.perf_counter() - started
        if not self.canary.is_alive():
            self.culprit = decoder.name
            outputs, error = None, "the decoder left the target computing something else (weights, hooks or code)"
        elif not drafts.is_alive():
            self.culprit = decoder.name
            outputs, error = None, "the decoder left the draft computing something else (weights, hooks or code)"
        return DecoderCall(outputs=outputs, error=error, trace=recorder.trace, seconds=seconds)

    def _recorder(self) -> Recorder:
        """Return a recorder that looks at as many layers as the plan says."""
        layers = outer_layers(self.target.model) if self.plan.trace == TraceMode.FAST else None
        recorder = Recorder(self.target.model, seed=self.plan.seed, layers=layers)
        if layers is not None:
            number = len(recorder.anatomy.layers)
            recorder.trace.caveats += (f"{len(layers)} of {number} layers were looked at (--trace fast)",)
        return recorder

    def _keep_evidence(self, evidence: Sequence[CaseEvidence]) -> None:
        self.evidence += [replace(one, token_texts=self._texts(token_ids_of(one))) for one in evidence]

    def _rendered_prompts(self) -> list[tuple[int, ...]]:
        """Return the token ids of every prompt; of a question whose second turn is asked, those of the first."""
        require_chat_template(self.prompt_set, self.target)
        chat_template = self.plan.chat_template or self.prompt_set.has_follow_ups
        rendered = [
            tuple(render(prompt, self.target.tokenizer, chat_template=chat_template))
            for prompt in self.prompt_set.prompts
        ]
        self._check_lengths(rendered)
        return rendered

    def _check_lengths(self, rendered: Sequence[Sequence[int]]) -> None:
        limit = position_limit(self.target.model)
        if limit is None:
            return
        longest_draft = max(self.plan.draft_tokens)
        for prompt, prompt_ids in zip(self.prompt_set.prompts, rendered, strict=True):
            needed = len(prompt_ids) + self.plan.max_new_tokens + longest_draft
            if needed > limit:
                raise InputError(
                    f"prompt '{prompt.prompt_id}' needs {needed} positions "
                    f"({len(prompt_ids)} prompt + {self.plan.max_new_tokens} new + {longest_draft} draft tokens), "
                    f"the target has {limit}",
                    where=prompt.source,
                    way_out="shorten the prompt, lower --max-new-tokens, or take another target.",
                )

    def _needed_positions(self) -> dict[str, int]:
        """Return the most positions that each prompt can need, by its identifier."""
        budget = self.plan.max_new_tokens + max(self.plan.draft_tokens)
        prompts = zip(self.prompt_set.prompts, self.rendered, strict=True)
        return {prompt.prompt_id: len(prompt_ids) + budget for prompt, prompt_ids in prompts}

    def _text(self, ids: Sequence[int]) -> str:
        return str(self.target.tokenizer.decode(list(ids), skip_special_tokens=False))

    def _token_texts(self) -> dict[int, str]:
        """Return the text of each token that the reference or a candidate generated."""
        return self._texts(self.generated_ids)

    def _texts(self, token_ids: Collection[int]) -> dict[int, str]:
        anchor = self.target.tokenizer("a", add_special_tokens=False)["input_ids"][-1:]
        before = len(self._text(anchor))  # tokenizers that strip a leading space do so here, not from the token
        return {token: self._text([*anchor, token])[before:] for token in sorted(token_ids)}

    def _target_record(self) -> ModelRecord:
        return _model_record(
            self.target, eos_token_ids=self.eos_token_ids, applies_settings=self.plan.use_generation_config
        )

    def _draft_record(self, pair: ModelPair) -> ModelRecord | None:
        if pair.draft is None:
            return None
        if not isinstance(pair.draft, LoadedModel):
            return drafter_record(pair.draft, pad_token_id=self.target.pad_token_id)
        return _model_record(pair.draft, eos_token_ids=self.eos_token_ids)


def _model_record(loaded: LoadedModel, *, eos_token_ids: frozenset[int], applies_settings: bool = False) -> ModelRecord:
    settings = generation_settings(loaded.model)
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
        ignored_settings=() if applies_settings else settings,
        applied_settings=settings if applies_settings else (),
    )


def load_options(plan: AuditPlan) -> LoadOptions:
    """Return how a plan has its models loaded."""
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


def _ids(output: tuple[int, ...] | str) -> tuple[int, ...]:
    return output if isinstance(output, tuple) else ()


def _generated_tokens(results: Sequence[CaseResult]) -> int | None:
    if any(result.compared is Compared.TEXT for result in results):
        return None
    return sum(len(result.output_ids or ()) for result in results)


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
    return prompt_set if has_template or not prompt_set.is_bundled else prompt_set.without_chats()


def _one_line(failure: BaseException) -> str:
    try:
        text = " ".join(str(failure).split())
    except Exception:  # an exception may fail to describe itself
        text = ""
    return f"{type(failure).__name__}: {text[:300]}" if text else type(failure).__name__
