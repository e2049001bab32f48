"""Signs beside every word and colour, in plain ASCII where a terminal cannot draw the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specaudit.core.vocabulary import RunVerdict

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbols:
    """Signs that one console can draw."""

    passed: str
    """Before a verdict that passes."""

    failed: str
    """Before a finding."""

    unknown: str
    """Before what could not be measured."""

    partly: str
    """Before what was measured in part."""

    ellipsis: str
    """For what was cut away."""

    ended: str
    """For an output that has stopped."""

    separator: str
    """Between the parts of a heading."""

    is_ascii: bool
    """Whether only ASCII may be printed."""

    def of(self, verdict: RunVerdict) -> str:
        """Return the sign of a verdict."""
        return {
            RunVerdict.LOSSLESS: self.passed,
            RunVerdict.EQUAL_OUTPUTS: self.partly,
            RunVerdict.FAILED: self.failed,
            RunVerdict.INSUFFICIENT_COVERAGE: self.unknown,
            RunVerdict.NO_EVIDENCE: self.unknown,
            RunVerdict.INTERRUPTED: self.unknown,
        }[verdict]


UNICODE = Symbols(
    passed="✓", failed="✗", unknown="?", partly="○", ellipsis="…", ended="(end)", separator=" · ", is_ascii=False
)
ASCII = Symbols(
    passed="+", failed="x", unknown="?", partly="o", ellipsis="...", ended="(end)", separator=", ", is_ascii=True
)

STYLES = {
    RunVerdict.LOSSLESS: "green",
    RunVerdict.EQUAL_OUTPUTS: "yellow",
    RunVerdict.FAILED: "red",
    RunVerdict.INSUFFICIENT_COVERAGE: "yellow",
    RunVerdict.NO_EVIDENCE: "yellow",
    RunVerdict.INTERRUPTED: "yellow",
}
"""Colour of a verdict; its word and sign always stand beside it."""


def symbols_for(console: Console) -> Symbols:
    """Return the signs that `console` can encode."""
    return ASCII if console.options.ascii_only else UNICODE
