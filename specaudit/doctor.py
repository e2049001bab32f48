"""The doctor: a short probe of a target, and of decoders, that tells what can be observed and what a run costs."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import torch

from specaudit.batch.cache import Feeder, SlotCache
from specaudit.canary import Canary
from specaudit.core.events import UnitFinished
from specaudit.core.prompt import Prompt
from specaudit.decoders import greedy
from specaudit.decoders.resolution import ResolvedDecoder, resolve_decoder
from specaudit.diagnosis import (
    DecoderProbe,
    Diagnosis,
    MemoryEstimate,
    ModelFacts,
    TapReadings,
    TargetFacts,
    TargetProbe,
)
from specaudit.models.loaded import LoadedModel
from specaudit.models.loading import load_pair
from specaudit.models.rendering import render
from specaudit.models.source import parse_source
from specaudit.models.special_ids import text_config
from specaudit.planning import check_decoders, plan_arms
from specaudit.prompts import PromptSet
from specaudit.runner import Audit, Selection, load_options
from specaudit.settings import generation_settings, position_limit
from specaudit.threads import torch_threads
from specaudit.trace.anatomy import Anatomy, examine
from specaudit.trace.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from specaudit.core.records import AuditPlan
    from specaudit.models.loaded import ModelPair
    from specaudit.trace.records import Trace

PROBE_TOKENS = 8
"""New tokens of a probe."""

PROMPTS = tuple(
    Prompt(prompt_id=f"probe-{place}", text=text, source="doctor")
    for place, text in enumerate(("The weather today is", "One, two, three, four,"))
)
"""Prompts of a probe: decoders get both, the target alone the first."""


def diagnose(plan: AuditPlan, *, batch_size: int, length: int) -> Diagnosis:
    """Load what a plan names and probe the target and each decoder; nothing of the plan itself is run.

    Memory is estimated for `batch_size` rows of `length` tokens. Raises SpecauditError for what a run of the plan would
    refuse before it decodes anything.
    """
    parse_source(plan.target, role="target", revision=plan.revision)
    decoders = [resolve_decoder(name) for name in plan.decoders]
    check_decoders(plan, decoders)
    pair = load_pair(plan.target, plan.draft, options=load_options(plan))
    models = [loaded for loaded in (pair.target, pair.draft) if isinstance(loaded, LoadedModel)]
    with torch_threads(plan.threads, pair.target):
        probe = _probe_target(pair.target)
        kv_bytes = [_kv_bytes_per_token(loaded) for loaded in models]
        probes = tuple(_probe_decoder(plan, decoder, pair) for decoder in decoders)
    return Diagnosis(
        target=_target_facts(pair.target),
        draft=_draft_facts(pair, plan.draft),
        probe=probe,
        memory=MemoryEstimate(
            batch_size=batch_size,
            length=length,
            weight_bytes=_weight_bytes(models),
            kv_bytes_per_token=sum(kv_bytes),
            kv_bytes=sum(kv_bytes) * batch_size * length,
        ),
        decoders=probes,
    )


def _probe_target(target: LoadedModel) -> TargetProbe:
    """Let the target continue the first prompt, once untraced to warm up and once traced."""
    prompt = render(PROMPTS[0], target.tokenizer, chat_template=False)
    recorder = Recorder(target.model)
    error, seconds = None, 0.0
    try:
        _continue(target, prompt)
        with recorder:
            started = time.perf_counter()
            _continue(target, prompt)
            seconds = time.perf_counter() - started
    except Exception as failure:  # whatever a model's own code raises is what the probe is for
        error = f"{type(failure).__name__}: {failure}"
    return TargetProbe(
        taps=_tap_readings(recorder.trace, recorder.anatomy),
        tokens_per_second=None if error is not None else PROBE_TOKENS / seconds,
        error=error,
    )


def _continue(target: LoadedModel, prompt: list[int]) -> None:
    greedy.decode(
        target.model,
        None,
        target.tokenizer,
        [prompt],
        max_new_tokens=PROBE_TOKENS,
        draft_tokens=0,
        eos_token_ids=set(),
        pad_token_id=target.pad_token_id,
    )


def _tap_readings(trace: Trace, anatomy: Anatomy) -> TapReadings:
    steps = trace.steps
    seen = [{layer for view in step.views for layer in view.layers} for step in steps]
    return TapReadings(
        steps=len(steps),
        steps_with_ids=sum(step.input_ids is not None for step in steps),
        steps_with_positions=sum(step.position_ids is not None for step in steps),
        steps_with_writes=sum(step.cache is not None for step in steps),
        steps_with_logits=sum(step.top_ids is not None for step in steps),
        attention_layers=len(anatomy.layers),
        attention_layers_seen=len(set.intersection(*seen)) if seen else 0,
        obstacles=tuple(dict.fromkeys(chain(trace.obstacles, *(step.obstacles for step in steps)))),
    )


@torch.no_grad()
def _kv_bytes_per_token(loaded: LoadedModel) -> int:
    feeder = Feeder(loaded.model, SlotCache(loaded.model))
    token = torch.tensor([[loaded.pad_token_id]], device=loaded.device)
    feeder.feed(token, attention_mask=None, position_ids=torch.zeros_like(token))
    return feeder.cache.bytes_per_slot


def _probe_decoder(plan: AuditPlan, decoder: ResolvedDecoder, pair: ModelPair) -> DecoderProbe:
    """Run one decoder on the prompts of the probe as a run would, together where it can."""
    batch_size = min(len(PROMPTS), decoder.max_batch_size or len(PROMPTS))
    probe_plan = replace(
        plan,
        decoders=(decoder.name,),
        batch_sizes=(batch_size,),
        draft_tokens=plan.draft_tokens[:1],
        seeds=plan.seeds[:1],
        max_new_tokens=PROBE_TOKENS,
        chat_template=False,
    )
    prompt_set = PromptSet(name="doctor", prompts=PROMPTS)
    canary = Canary([pair.target.model])
    audit = Audit(probe_plan, [decoder], plan_arms(probe_plan, [decoder]), prompt_set, pair, Selection(), canary)
    cases = [case for event in audit.events() if isinstance(event, UnitFinished) for case in event.results]
    return DecoderProbe(
        decoder=decoder.name,
        batch_size=batch_size,
        verdicts=dict(Counter(case.verdict.value for case in cases)),
        syncs=dict(Counter(case.sync.value for case in cases)),
        reasons=tuple(dict.fromkeys(reason for case in cases for reason in (case.error, case.sync_reason) if reason)),
    )


def _target_facts(target: LoadedModel) -> TargetFacts:
    anatomy = examine(target.model)
    return TargetFacts(
        model=_model_facts(target),
        windows=tuple(layer.window for layer in anatomy.layers),
        positions=_positions(anatomy),
        position_limit=position_limit(target.model),
        trained_length=getattr(text_config(target.model), "max_position_embeddings", None),
        eos_token_ids=tuple(sorted(target.eos_token_ids)),
        pad_token_id=target.pad_token_id,
        has_chat_template=bool(getattr(target.tokenizer, "chat_template", None)),
        ignored_settings=generation_settings(target.model),
    )


def _positions(anatomy: Anatomy) -> str:
    if anatomy.rotary:
        return "rotary"
    if anatomy.learned:
        return "learned table"
    return "learned table, counted in the mask" if anatomy.counted else "unknown"


def _draft_facts(pair: ModelPair, given: str | None) -> ModelFacts | str | None:
    if isinstance(pair.draft, LoadedModel):
        return _model_facts(pair.draft)
    return None if pair.draft is None else given


def _model_facts(loaded: LoadedModel) -> ModelFacts:
    return ModelFacts(
        source=loaded.source,
        architecture=type(loaded.model).__name__,
        parameters=sum(parameter.numel() for parameter in loaded.model.parameters()),
        weight_bytes=_weight_bytes([loaded]),
        dtype=str(loaded.dtype).removeprefix("torch."),
        device=str(loaded.device),
        attn=loaded.attn,
        vocabulary=loaded.vocab_size,
    )


def _weight_bytes(models: Iterable[LoadedModel]) -> int:
    """Return the bytes of parameters and buffers; a draft of the target's own layers shares them."""
    tensors = {
        tensor.data_ptr(): tensor.numel() * tensor.element_size()
        for loaded in models
        for tensor in chain(loaded.model.parameters(), loaded.model.buffers())
    }
    return sum(tensors.values())
