"""Closed vocabularies: every verdict a reader can meet, and nothing else."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """What became of one case: one prompt, decoder, batch size and draft length."""

    IDENTICAL = "identical"
    """The candidate's token ids equal the reference's, lengths included."""

    DIVERGED = "diverged"
    """The token ids differ."""

    UNMEASURED = "unmeasured"
    """The candidate gave no usable output (it raised, timed out, returned too few rows, ...). Never counted as 0 %."""


class Sync(StrEnum):
    """Whether rows, positions and cache stayed in step, as seen from inside the target model."""

    CLEAN = "clean"
    """Every token of the row's stream that an emitted token rests on was seen, and each check held for it."""

    VIOLATED = "violated"
    """A check failed for a token that an emitted token rests on."""

    UNOBSERVED = "unobserved"
    """Something needed was not seen; the case says what. Never the same as clean."""


class Check(StrEnum):
    """An invariant checked at every step and row."""

    RECT = "RECT"
    """Rectangular alignment: mask as wide as the cache, each row sees exactly its own stream."""

    POS = "POS"
    """Position-ID contiguity: a token's position is the number of its row's own tokens before it."""


class RunVerdict(StrEnum):
    """What became of a whole run."""

    LOSSLESS = "lossless"
    """Every case identical, and the inner state of every one seen clean."""

    EQUAL_OUTPUTS = "equal-outputs"
    """Every case identical; the inner state of at least one was not observed."""

    FAILED = "failed"
    """At least one case diverged or violated a check."""

    NO_EVIDENCE = "no-evidence"
    """No finding, but at least one planned case could not be measured (or none was planned)."""

    INTERRUPTED = "interrupted"
    """The run was stopped before all planned cases were done, and what was done shows no finding."""
