"""What the oracle says of outputs: a score for each token, the noise floor, and the zone of a token above it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

TIE_FACTOR = 4.0
"""A regret above this many times the noise floor is never a tie; see `specaudit.oracle.floor`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptedOutput:
    """What was asked and what came back, as token ids."""

    prompt_ids: tuple[int, ...]
    """Token ids of the prompt; at least one."""

    output_ids: tuple[int, ...]
    """Generated token ids; may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenScore:
    """One emitted token against the target's raw logits at its own prefix: the prompt and all output before it."""

    index: int
    """Index into the generated tokens; the prompt is not counted."""

    token_id: int
    """The emitted token."""

    argmax_id: int
    """A token that attains the largest logit."""

    rank: int
    """Number of tokens with a larger logit: 0 for the argmax, and for every token that ties with it."""

    regret: float
    """Largest logit minus the emitted token's, at least 0, in logits; infinite for a token with logit minus infinity."""

    largest_logit: float
    """The largest logit, finite: rounding errors scale with it."""

    runner_up_id: int | None = None
    """A token with the second largest logit, or None where it was not asked for."""

    runner_up_logit: float | None = None
    """The second largest logit, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """One output as the target scores it."""

    scores: tuple[TokenScore, ...]
    """A score for each emitted token, in order; empty for an empty output and where there is an `error`."""

    error: str | None = None
    """Why the output could not be scored, or None."""

    @property
    def regrets(self) -> tuple[float, ...]:
        """Return the regret of each token, in logits."""
        return tuple(score.regret for score in self.scores)

    @property
    def departures(self) -> tuple[TokenScore, ...]:
        """Return the tokens that are not the argmax and do not tie with it, in order."""
        return tuple(score for score in self.scores if score.rank > 0)


class Zone(StrEnum):
    """What a regret may be put down to."""

    TIE = "tie"
    """Up to the floor: what decoding without speculation shows as well."""

    TIE_IF_CERTIFIED = "tie-if-certified"
    """Up to four times the floor: rounding only where it was shown that the token rests on a clean context."""

    NEVER = "never-a-tie"
    """Above: a fault, whatever else is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """What rounding does to outputs that nothing is wrong with, as control arms measured it."""

    maximum: float
    """Largest regret of the controls, in logits; 0 where every token was the argmax."""

    resolution: float
    """Regret that rounding explains by itself, in logits: how far two logits of the controls lay closer or further apart
    than in the oracle's forward, at most, or without a trace of them what `rounding_of_logits` says."""

    outputs: int
    """Outputs of the controls that have a token, at least 1."""

    tokens: int
    """Tokens of these outputs."""

    departures: int
    """Those tokens whose regret is above 0."""

    departing: int = 0
    """Outputs with such a token."""

    @property
    def excused(self) -> float:
        """Return the regret, in logits, up to which a token is a tie."""
        return max(self.maximum, self.resolution)

    @property
    def accused(self) -> float:
        """Return the regret, in logits, above which a token is never a tie."""
        return TIE_FACTOR * self.excused


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """What the control arms of one shape gave: a line of `controls.jsonl`."""

    batch_size: int
    """Rows a batch."""

    draft_tokens: int
    """Draft length K."""

    floor: NoiseFloor | None
    """The floor, or None where a control is not right."""

    problem: str | None
    """Why there is no floor, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """An emitted token that is not the argmax at its prefix and does not tie with it."""

    score: TokenScore
    """The token's score."""

    zone: Zone | None
    """What it may be put down to, or None where no floor was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredOutput:
    """One recorded output as the oracle judges it."""

    record_id: str
    """Identifier of the output in its recording."""

    tokens: int
    """Tokens judged: the output up to its first end of sequence, that included; 0 where there is an `error`."""

    ties: int
    """Those of them that share the largest logit with the argmax, exactly."""

    departures: tuple[Departure, ...]
    """Those of them that are not the argmax, in order."""

    tail_start: int | None
    """Index of the first token after end of sequence, or None where there is none."""

    tail_tokens: int
    """Tokens from there on."""

    is_ended: bool
    """Whether end of sequence stands in the output."""

    error: str | None = None
    """Why nothing was judged, or None."""

    @property
    def largest_regret(self) -> float | None:
        """Return the largest regret, in logits, or None where no token was judged."""
        return None if not self.tokens else max((one.score.regret for one in self.departures), default=0.0)

    @property
    def is_faulty(self) -> bool:
        """Return whether a fault is certain: a token that is never a tie, or text after end of sequence."""
        return self.tail_start is not None or any(one.zone is Zone.NEVER for one in self.departures)

    @property
    def is_undecided(self) -> bool:
        """Return whether a token can be neither excused nor accused: a recording is never certified."""
        return not self.is_faulty and any(one.zone in {None, Zone.TIE_IF_CERTIFIED} for one in self.departures)
