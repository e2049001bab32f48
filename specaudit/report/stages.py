"""Where a run is, as told by its events: decoding the reference, or somewhere in an arm."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specaudit.core.events import CallFinished, ReferenceDecoded, RunStarted, UnitFinished, UnitStarted
from specaudit.core.records import UNIT_BATCHES
from specaudit.core.stored_run import arm_of
from specaudit.core.vocabulary import Sync, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from specaudit.core.events import Event
    from specaudit.core.records import Arm, CaseResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A moment of a run."""

    name: str
    """What is running: `reference`, or decoder and batch size and, where there are several, draft length and seed."""

    noun: str
    """What is counted: `prompts` or `cases`."""

    done: int
    """How many of them are done."""

    total: int
    """How many of them there are."""

    notes: tuple[str, ...]
    """What is worth saying about them: `1 diverged`, `5 cached`."""

    is_complete: bool
    """Whether nothing is left to do, judging included."""

    def line(self) -> str:
        """Return the stage in words: `eqspec batch 4: 32 of 48 cases, 1 diverged`."""
        return f"{self.name}: " + ", ".join((f"{self.done} of {self.total} {self.noun}", *self.notes))


class StageTracker:
    """Follows the events of one run, also of a resumed one that starts in the middle of an arm."""

    def __init__(self) -> None:
        """Start before the first event."""
        self.planned_cases = 0
        """Cases of the whole run, or 0 before it has started."""
        self._prompts = 0
        self._names_draft_tokens = self._names_seed = False
        self._cached = 0
        self._arm: Arm | None = None
        self._judged = 0  # in finished units of the whole run
        self._before = 0  # in units of this arm before the present one
        self._present = 0  # in finished calls of the present unit
        self._counts: Counter[str] = Counter()

    @property
    def finished_cases(self) -> int:
        """Return the cases that this process has seen finish."""
        return self._judged + self._present

    def follow(self, event: Event) -> Stage | None:
        """Take note of an event and return where the run is now, or None when there is nothing to show."""
        match event:
            case RunStarted():
                self.planned_cases = event.planned_cases
                self._prompts = len(event.prompt_ids)
                self._names_draft_tokens = len(event.plan.draft_tokens) > 1
                self._names_seed = len(event.plan.seeds) > 1
                return None
            case ReferenceDecoded():
                self._cached += event.cached
                notes = (f"{self._cached} cached",) if self._cached else ()
                return Stage(
                    name="reference",
                    noun="prompts",
                    done=event.done,
                    total=event.total,
                    notes=notes,
                    is_complete=event.done >= event.total,
                )
            case UnitStarted():
                self._enter(event.arm, event.unit)
            case CallFinished():
                self._present += event.cases
            case UnitFinished():
                self._judge(event)
        return self._arm_stage()

    def _enter(self, arm: Arm, unit: int) -> None:
        if arm != self._arm:
            self._arm = arm
            self._counts.clear()
        self._before = unit * UNIT_BATCHES * arm.batch_size
        self._present = 0

    def _judge(self, event: UnitFinished) -> None:
        self._enter(arm_of(event.timing), event.timing.unit)
        self._before += len(event.results)
        self._judged += len(event.results)
        self._counts.update(_bad_outcomes(event.results))

    def _arm_stage(self) -> Stage | None:
        if self._arm is None:
            return None
        name = f"{self._arm.decoder} batch {self._arm.batch_size}"
        if self._names_draft_tokens and self._arm.draft_tokens is not None:
            name += f" K {self._arm.draft_tokens}"
        if self._names_seed and self._arm.seed is not None:
            name += f" seed {self._arm.seed}"
        return Stage(
            name=name,
            noun="cases",
            done=self._before + self._present,
            total=self._prompts,
            notes=tuple(f"{count} {outcome}" for outcome, count in self._counts.items()),
            is_complete=self._before >= self._prompts and not self._present,
        )


def _bad_outcomes(results: Iterable[CaseResult]) -> Counter[str]:
    """Count what a reader wants to know at once, in the order of its gravity."""
    outcomes: Counter[str] = Counter()
    results = tuple(results)
    for verdict in (Verdict.DIVERGED, Verdict.UNMEASURED):
        outcomes[verdict.value] = sum(result.verdict is verdict for result in results)
    outcomes[Sync.VIOLATED.value] = sum(result.sync is Sync.VIOLATED for result in results)
    return +outcomes
