"""Closed vocabularies: every verdict a reader can meet, and nothing else."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """What became of one case: one prompt, decoder, batch size and draft length."""

    IDENTICAL = "identical"
    """The candidate's token ids equal the reference's, lengths included (or its text, see `Compared`)."""

    TIE = "tie"
    """They differ by rounding: every token is as good as the target's choice, within what sound decoding shows as well."""

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
    """All slots, positions and layers were right; what that proves is limited, and the case says why."""

    VIOLATED = "violated"
    """An emitted token lacks a warrant: a check failed for something that it rests on."""

    UNOBSERVED = "unobserved"
    """Something needed was not seen; the case says what. Never the same as clean or certified."""


class TraceMode(StrEnum):
    """How much of the cache is looked at."""

    FULL = "full"
    """Every layer at every step: what a certificate takes."""

    FAST = "fast"
    """The first and the last layer of each window: a case is clean at best."""


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


class Cause(StrEnum):
    """Why an output lacks a warrant or differs from the reference."""

    POSITION_OFFSET = "position-offset"
    """All tokens that a row fed in a step were given positions off by one constant."""

    POSITION_GAP = "position-gap"
    """Positions inside a row jump."""

    POSITION_DUPLICATE = "position-duplicate"
    """Two tokens of a row were given one position."""

    POSITIONS_SHARED = "positions-shared-across-rows"
    """Rows of different lengths were given the same positions: those that a model fills in where none are passed."""

    PAD_ATTENDED = "pad-attended"
    """A token of a row saw padding."""

    REJECTED_ATTENDED = "rejected-attended"
    """A token saw a rejected draft whose slot lies in the cache and should be masked."""

    LIVE_SLOT_MASKED = "live-slot-masked"
    """A token did not see a slot of its own stream that lies in the cache."""

    STALE_KV = "stale-kv"
    """The slot of a rejected draft was kept where it should have been cut or overwritten."""

    SHIFTED_KV = "shifted-kv"
    """A slot of the row's own stream is gone from the cache, or lies where another should."""

    FOREIGN_KV = "foreign-kv"
    """A token saw slots that another row wrote."""

    UNWRITTEN_KV = "unwritten-kv"
    """A token saw a slot with bits that no forward wrote: zeros, casts, blends."""

    LAYER_MISMATCH = "layer-mismatch"
    """Layers, or keys and values, hold different tokens in one slot."""

    ACCEPTED_MISMATCH = "accepted-mismatch"
    """A proposal was accepted that the target had not chosen."""

    BONUS_FROM_DRAFT = "bonus-from-draft"
    """The token after the accepted proposals is the draft's, not the target's."""

    BONUS_WRONG = "bonus-wrong"
    """The token after the accepted proposals is not the one that the target chose there."""

    TOKEN_DROPPED = "token-dropped"  # noqa: S105 (no password)
    """A token that the target chose is missing from the output, which goes on after it."""

    TOKEN_REPEATED = "token-repeated"  # noqa: S105 (no password)
    """A token stands in the output once more than the target chose it."""

    UNVERIFIED_TOKEN = "unverified-token"  # noqa: S105 (no password)
    """A token was emitted at a prefix that the target never read."""

    MISSED_EOS = "missed-eos"
    """Decoding went on after an end of sequence."""

    EARLY_STOP = "early-stop"
    """The output ends before the end of sequence and before the budget."""

    TAIL_AFTER_EOS = "tail-after-eos"
    """Tokens of the block that held the end of sequence were emitted after it."""

    PROMPT_EOS = "prompt-eos"
    """An end-of-sequence token in the prompt was taken for the end of the output."""

    OVER_BUDGET = "over-budget"
    """More tokens were returned than asked for."""

    PAD_LEAK = "pad-leak"
    """Padding stands in the output."""

    PERMUTED = "permuted"
    """The output is another prompt's."""

    ROUNDING_TIE = "rounding-tie"
    """Logits too close for the arithmetic in use; no corruption of rows, positions, masks or cache."""

    UNEXPLAINED = "unexplained"
    """Nothing that was seen explains the difference."""


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
    """Every case identical or a tie, and the inner state of every one seen in order."""

    EQUAL_OUTPUTS = "equal-outputs"
    """Every case identical or a tie; the inner state of at least one was not observed."""

    FAILED = "failed"
    """At least one case diverged or violated a check."""

    INSUFFICIENT_COVERAGE = "insufficient-coverage"
    """No finding, but a decoder did not go through the patterns of acceptance in which faults show."""

    NO_EVIDENCE = "no-evidence"
    """No finding, but at least one planned case could not be measured (or none was planned)."""

    INTERRUPTED = "interrupted"
    """The run was stopped before all planned cases were done, and what was done shows no finding."""
