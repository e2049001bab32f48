"""Closed vocabularies: every verdict a reader can meet, and nothing else."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """What became of one case: one prompt, decoder, batch size and draft length."""

    IDENTICAL = "identical"
    """The candidate's token ids equal the reference's, lengths included (or its text, see `Compared`)."""

    DIVERGED = "diverged"
    """They differ."""

    UNMEASURED = "unmeasured"
    """The candidate gave no usable output (it raised, timed out, returned too few rows, ...). Never counted as 0 %."""


class Compared(StrEnum):
    """What the verdict of a case compares with the reference."""

    IDS = "ids"
    """Token ids, lengths included."""

    TEXT = "text"
    """Text without special tokens, white space kept, where a decoder returns nothing better: ids may differ unseen."""


class Sync(StrEnum):
    """Whether rows, positions and cache stayed in step, as seen from inside the target model."""

    CERTIFIED = "certified"
    """The target chose every token of the output at exactly its prefix: all slots, positions and layers were right."""

    CLEAN = "clean"
    """All slots, positions and layers were right; what the target chose was not checked (its logits are processed)."""

    VIOLATED = "violated"
    """An emitted token lacks a warrant: a check failed for something that it rests on."""

    UNOBSERVED = "unobserved"
    """Something needed was not seen; the case says what. Never the same as clean or certified."""


class Check(StrEnum):
    """An invariant checked at every step and row."""

    RECT = "RECT"
    """Rectangular alignment: mask as wide as the cache, each row sees exactly its own stream."""

    POS = "POS"
    """Position-ID contiguity: a token's position is the number of its row's own tokens before it."""

    KV = "KV"
    """Contents of the cache: the slots that a token saw hold, in every layer, exactly its prefix."""

    WARRANT = "WARRANT"
    """Choice: every token of the output is one that the target chose at its prefix."""


class Symptom(StrEnum):
    """What a reader would see wrong in an output, judged against the reference's own output for the prompt."""

    REPETITION = "repetition"
    """A token or a phrase is repeated over and over."""

    SYMBOLS = "symbols"
    """Marks that belong to no text: special tokens, U+FFFD, control characters, long runs of punctuation."""

    TRUNCATION = "truncation"
    """The output breaks off where the reference goes on."""

    EMPTY = "empty"
    """The output has nothing to read."""

    LEAK = "leak"
    """Padding stands inside the output."""

    PROMPT_ECHO = "prompt-echo"
    """The output begins with the prompt, or with its end."""


class RunVerdict(StrEnum):
    """What became of a whole run."""

    LOSSLESS = "lossless"
    """Every case identical, and the inner state of every one seen in order."""

    EQUAL_OUTPUTS = "equal-outputs"
    """Every case identical; the inner state of at least one was not observed."""

    FAILED = "failed"
    """At least one case diverged or violated a check."""

    NO_EVIDENCE = "no-evidence"
    """No finding, but at least one planned case could not be measured (or none was planned)."""

    INTERRUPTED = "interrupted"
    """The run was stopped before all planned cases were done, and what was done shows no finding."""
