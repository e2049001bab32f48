"""What was seen while a script decoded: one record an output, and the whole as plain text."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specaudit.core.errors import printable
from specaudit.core.vocabulary import Sync

if TYPE_CHECKING:
    from collections.abc import Iterator

    from specaudit.core.records import CauseFinding, Finding

WIDTH = 80
"""Columns that the text is laid out for."""

MOST_SHOWN = 8
"""Outputs described one by one of those that are not certified."""


class NotCertifiedError(AssertionError):
    """An output is not certified; the message is the report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedCase:
    """One prompt and what was seen of its decoding."""

    index: int
    """Place among the prompts, counted from 0."""

    prompt_ids: tuple[int, ...]
    """Token ids of the prompt."""

    output_ids: tuple[int, ...]
    """Token ids generated, the prompt not included."""

    sync: Sync
    """Certified, violated or unobserved."""

    sync_reason: str | None
    """What was not observed, for `unobserved`; else None."""

    findings: tuple[Finding, ...]
    """First failure of each check, earliest first; empty unless `violated`."""

    causes: tuple[CauseFinding, ...]
    """Why, the origin first; empty unless `violated`."""

    warranted_tokens: int | None
    """Output tokens that the model chose at exactly their prefix, or None where the model cannot be observed."""

    @property
    def is_certified(self) -> bool:
        """Return whether the model chose every token of the output at exactly its prefix."""
        return self.sync is Sync.CERTIFIED


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchReport:
    """What was seen of all prompts; `str()` is text for people, 80 columns wide."""

    architecture: str
    """Class of the model."""

    forwards: int
    """Forwards of the model that were watched."""

    cases: tuple[WatchedCase, ...]
    """One a prompt, in their order; never empty."""

    notes: tuple[str, ...]
    """What else to know, for people."""

    @property
    def is_certified(self) -> bool:
        """Return whether every output is certified."""
        return all(case.is_certified for case in self.cases)

    @property
    def sync(self) -> Sync:
        """Return the worst sync of all outputs: violated, else unobserved, else certified."""
        found = {case.sync for case in self.cases}
        return next(sync for sync in (Sync.VIOLATED, Sync.UNOBSERVED, Sync.CERTIFIED) if sync in found)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings of all outputs, in their order."""
        return tuple(finding for case in self.cases for finding in case.findings)

    @property
    def causes(self) -> tuple[CauseFinding, ...]:
        """Return the causes of all outputs, in their order."""
        return tuple(cause for case in self.cases for cause in case.causes)

    def require_certified(self) -> None:
        """Raise NotCertifiedError, an AssertionError, unless every output is certified; unobserved is not certified."""
        if not self.is_certified:
            raise NotCertifiedError(f"not certified\n{self}")

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _paragraph(self._headline(), indent=0)
        uncertified = [case for case in self.cases if not case.is_certified]
        for case in sorted(uncertified, key=lambda case: case.sync is not Sync.VIOLATED)[:MOST_SHOWN]:
            yield from _case_lines(case)
        if len(uncertified) > MOST_SHOWN:
            yield f"{len(uncertified) - MOST_SHOWN} more outputs are not certified"
        for note in self.notes:
            yield from _paragraph(f"note: {note}", indent=0)

    def _headline(self) -> str:
        sync = self.sync
        count = sum(case.sync is sync for case in self.cases)
        tokens = sum(len(case.output_ids) for case in self.cases)
        warranted = [case.warranted_tokens for case in self.cases]
        seen = "" if None in warranted else f"; {sum(filter(None, warranted))} of {_counted(tokens, 'token')} warranted"
        watched = f"{_counted(self.forwards, 'forward')} of {self.architecture} watched"
        return f"specaudit: {sync.value}: {count} of {_counted(len(self.cases), 'output')}{seen}; {watched}"


def _case_lines(case: WatchedCase) -> Iterator[str]:
    seen = "" if case.warranted_tokens is None else f", {case.warranted_tokens} of {len(case.output_ids)} warranted"
    reason = "" if case.sync_reason is None else f": {case.sync_reason}"
    yield from _paragraph(f"output {case.index}: {case.sync.value}{seen}{reason}", indent=2)
    for cause in case.causes:
        yield from _paragraph(f"cause: {cause.cause.value}: {cause.evidence}", indent=4)
    for finding in case.findings:
        yield from _paragraph(_told(finding, len(case.prompt_ids)), indent=4)


def _told(finding: Finding, prompt_length: int) -> str:
    layer = "" if finding.layer is None else f", layer {finding.layer}"
    place = f"{finding.check.value} at step {finding.step}, row {finding.row}, query {finding.query}{layer}"
    index = finding.stream_index - prompt_length
    token = f"prompt token {finding.stream_index}" if index < 0 else f"output token {index}"
    expected = "" if finding.expected is None else f"expected {finding.expected}; "
    return f"{place}: {finding.message} ({expected}{token})"


def _paragraph(text: str, *, indent: int) -> list[str]:
    margin = " " * indent
    return textwrap.wrap(
        printable(text),
        WIDTH,
        initial_indent=margin,
        subsequent_indent=margin + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
