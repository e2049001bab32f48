"""What the self-test found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What became of a fault in one layout."""

    RIGHT = "right"
    """Caught in every row that it touched, with the right cause, and nowhere else."""

    MISNAMED = "misnamed"
    """Caught, and given another cause in some row."""

    MISSED = "missed"
    """Not caught in some row that it touched."""

    FALSE_ALARM = "false alarm"
    """A row that it did not touch was not certified."""

    NOT_MADE = "not made"
    """No trial suited it: nothing is known."""

    INAPPLICABLE = "inapplicable"
    """It means nothing there; the reason says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOutcome:
    """What became of a fault in one row that it touched."""

    row: int
    """Number of the prompt, counted from 0."""

    caught_by: tuple[str, ...]
    """Checks that found it, and `output` where the output differs from the authority's; empty when it was missed."""

    cause: str | None
    """Cause that was named, or None."""

    evidence: str | None
    """What was said of it, or None."""

    delay: int | None
    """Steps from where the fault should show to the finding, or None where no step shows it."""

    is_exact: bool
    """Whether the output equals the authority's."""

    partial_match: float
    """Share of its tokens before the first difference, in [0, 1]."""

    rouge_l: float | None
    """ROUGE-L of its text, in [0, 1], or None where it has no words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellOutcome:
    """What became of one fault in one layout on one model."""

    fault: str
    """Name of the fault."""

    layout: str
    """Layout of the decoder."""

    outcome: Outcome
    """In one word."""

    expected: tuple[str, ...]
    """Causes that are right."""

    rows: tuple[RowOutcome, ...]
    """The rows that it touched."""

    remark: str | None
    """Why it is inapplicable, or which row raised a false alarm and how; else None."""

    seen_by: tuple[str, ...] = ()
    """Where that was asked: whose recorder objected in some touched row, `first`, `ends` (first and last layer), `all`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantOutcome:
    """What became of a legal variant."""

    name: str
    """Name of the variant."""

    is_certified: bool
    """Whether every case was certified and equals the authority's output."""

    remark: str | None
    """Why it was not tried, or what was objected; else None."""

    is_tried: bool
    """Whether it is right for the model."""


class Fate(StrEnum):
    """What became of a mutant."""

    CAUGHT = "caught"
    """Some case was not certified."""

    HARMLESS = "harmless"
    """Every case was certified, and all logits at emitted tokens are those of an uncached forward."""

    SURVIVED = "survived"
    """Every case was certified, and some logits are others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantOutcome:
    """What became of one mutant."""

    number: int
    """Number in its seed."""

    description: str
    """What was done."""

    fate: Fate
    """What became of it."""

    changes_logits: bool
    """Whether some logits at emitted tokens differ from those of an uncached forward over the same tokens."""

    changes_output: bool
    """Whether some output differs from the authority's."""

    seen_by: tuple[str, ...]
    """Whose recorder did not certify every case: `first` (layer), `ends` (first and last layer), `all`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectOutcome:
    """All that was found on one model."""

    subject: str
    """The model."""

    cells: tuple[CellOutcome, ...]
    """Faults by layout, in order."""

    variants: tuple[VariantOutcome, ...]
    """Legal variants, and the decoder of the faults without one."""

    mutants: tuple[MutantOutcome, ...]
    """Random mutants, in order of their numbers."""

    @property
    def is_passed(self) -> bool:
        """Return whether all faults that apply were named right, all variants certified, and no mutant survived."""
        faults = all(cell.outcome in {Outcome.RIGHT, Outcome.INAPPLICABLE} for cell in self.cells)
        variants = all(variant.is_certified for variant in self.variants if variant.is_tried)
        return faults and variants and all(mutant.fate is not Fate.SURVIVED for mutant in self.mutants)
