"""What the runner reports while it works; terminal, run directory and tests listen to the same stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specaudit.core.evidence import CaseEvidence
    from specaudit.core.records import Arm, AuditPlan, CaseResult, LeftOut, ModelRecord, UnitTiming
    from specaudit.core.scores import Control


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """Models and prompts are loaded; nothing has been decoded."""

    plan: AuditPlan
    """The plan as passed."""

    target: ModelRecord
    """The target as loaded."""

    draft: ModelRecord | None
    """The draft as loaded, or None when there is none."""

    decoder_digests: Mapping[str, str | None]
    """SHA-256 of the file that defines each decoder, or None where it has none."""

    prompt_set: str
    """Name of the prompt set."""

    prompt_set_digest: str
    """SHA-256 of the prompt set."""

    prompt_ids: tuple[str, ...]
    """Identifiers of the prompts, in the order of the units."""

    planned_cases: int
    """Number of cases in the whole run."""

    left_out: tuple[LeftOut, ...] = ()
    """Combinations that were asked for and are not run."""

    notices: tuple[str, ...] = ()
    """What a reader of the results should know of prompts and target, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceDecoded:
    """The reference has one more prompt."""

    prompt_id: str
    """Identifier of the prompt."""

    done: int
    """Prompts that the reference has."""

    total: int
    """Prompts that it needs."""

    cached: bool
    """Whether it was taken from the cache of an earlier run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitStarted:
    """A unit of an arm starts."""

    arm: Arm
    """The combination under audit."""

    unit: int
    """Unit of the arm, counted from 0."""

    cases: int
    """Number of cases in the unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFinished:
    """A decoder call of a unit returned (or failed)."""

    cases: int
    """Number of cases in the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorMeasured:
    """Control arms were run, to tell rounding from faults."""

    control: Control
    """What they gave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFinished:
    """All cases of a unit are judged."""

    results: tuple[CaseResult, ...]
    """One result a case, in the order of the prompts."""

    timing: UnitTiming
    """Time spent in the decoder."""

    evidence: tuple[CaseEvidence, ...] = ()
    """What was seen at the origin of each violated case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """Every planned unit is done."""

    token_texts: Mapping[int, str]
    """Text of each token id that was generated, for diffs."""


Event = RunStarted | ReferenceDecoded | UnitStarted | CallFinished | FloorMeasured | UnitFinished | RunFinished
