"""From a plan to the combinations that are run: decoder, batch size, draft length and seed.

A decoder that does not speculate has one arm a batch size, whatever the draft lengths and seeds. A batch size that a
decoder cannot take is left out and named. Seeds are outermost, so that one draft at a time is in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specaudit.core.errors import UsageError
from specaudit.core.records import Arm, LeftOut
from specaudit.core.vocabulary import TraceMode
from specaudit.decoders.registry import DraftNeed
from specaudit.models.drafts import is_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from specaudit.core.records import AuditPlan
    from specaudit.decoders.resolution import ResolvedDecoder


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """What a plan amounts to."""

    run: tuple[Arm, ...]
    """Combinations that are run, in order; at least one."""

    left_out: tuple[LeftOut, ...]
    """Combinations that were asked for and cannot be run."""


def check_decoders(plan: AuditPlan, decoders: Sequence[ResolvedDecoder]) -> None:
    """Raise UsageError for a decoder that cannot use the plan's draft or settings, before anything is loaded."""
    _check_draft(plan, decoders)
    _check_generation_config(plan, decoders)


def plan_arms(plan: AuditPlan, decoders: Sequence[ResolvedDecoder]) -> Arms:
    """Return the arms of a plan; raise UsageError when none is left."""
    left_out = tuple(
        LeftOut(decoder=decoder.name, batch_size=size, reason=f"decodes at most {decoder.max_batch_size} at a time")
        for decoder in decoders
        for size in plan.batch_sizes
        if not _takes(decoder, size)
    )
    run = tuple(
        arm
        for place, seed in enumerate(plan.seeds)
        for decoder in decoders
        for size in plan.batch_sizes
        if _takes(decoder, size)
        for arm in _arms(plan, decoder, size, seed, is_first_seed=place == 0)
    )
    if not run:
        names = " and ".join(f"'{decoder.name}'" for decoder in decoders)
        most = max(decoder.max_batch_size or 0 for decoder in decoders)
        raise UsageError(
            f"no batch size is left that {names} can take", where="--batch-size", way_out=f"as in --batch-size {most}."
        )
    return Arms(run=run, left_out=left_out)


def _takes(decoder: ResolvedDecoder, batch_size: int) -> bool:
    return decoder.max_batch_size is None or batch_size <= decoder.max_batch_size


def _arms(
    plan: AuditPlan, decoder: ResolvedDecoder, batch_size: int, seed: int, *, is_first_seed: bool
) -> Iterator[Arm]:
    if decoder.draft is not DraftNeed.NONE:
        for draft_tokens in plan.draft_tokens:
            yield Arm(decoder=decoder.name, batch_size=batch_size, draft_tokens=draft_tokens, seed=seed)
    elif is_first_seed:
        yield Arm(decoder=decoder.name, batch_size=batch_size, draft_tokens=None, seed=None)


def _check_draft(plan: AuditPlan, decoders: Sequence[ResolvedDecoder]) -> None:
    """Refuse a draft that a decoder cannot use, and a missing one, before anything is loaded."""
    needing = [decoder for decoder in decoders if decoder.draft is not DraftNeed.NONE]
    has_default = plan.target.startswith("bundled:")
    modular = [decoder for decoder in decoders if decoder.draft is DraftNeed.MODULE]
    if needing and plan.draft is None and not has_default:
        forms = "noisy:0.12 or layers:N" if modular else "noisy:0.12, layers:N, stress:0.4 or ngram"
        raise UsageError(
            f"decoder '{needing[0].name}' needs a draft",
            where="--draft",
            way_out=f"name a model, or derive one: --draft {forms}.",
        )
    if plan.draft is not None and not is_model(plan.draft) and modular:
        raise UsageError(
            f"decoder '{modular[0].name}' needs a draft model, '{plan.draft}' is none",
            where="--draft",
            way_out="use --draft noisy:0.12 or layers:N: a real model at any acceptance.",
        )


def check_trace_mode(name: str) -> None:
    """Raise UsageError for a word that is no trace mode."""
    if name not in set(TraceMode):
        raise UsageError(f"no trace mode '{name}'", where="--trace", way_out=f"give {' or '.join(TraceMode)}.")


def _check_generation_config(plan: AuditPlan, decoders: Sequence[ResolvedDecoder]) -> None:
    """Refuse to apply a generation config to one side only."""
    without = [decoder for decoder in decoders if not decoder.takes_generation_config]
    if plan.use_generation_config and without:
        raise UsageError(
            f"decoder '{without[0].name}' cannot be told to apply the target's generation config",
            where="--use-generation-config",
            way_out="leave the option out, or give the function a `generation_config` parameter.",
        )
