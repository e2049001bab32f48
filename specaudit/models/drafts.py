"""What `--draft` can name besides a model: drafts derived from the target or from the text itself.

With a second model, acceptance is whatever it is. These make any acceptance pattern on any target without one:
`layers:N` is fast and weak, `noisy:SCALE` goes from always right to always wrong with its scale, and `stress:RATE` and
`ngram:N`, which are no models, cost nothing at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specaudit.core.errors import ModelError, UsageError
from specaudit.models.source import ModelSource, parse_source

if TYPE_CHECKING:
    from specaudit.models.options import LoadOptions

DRAFT_FORMS = (
    "give layers:N, noisy:SCALE, stress:RATE, ngram, or a model (bundled:FAMILY, a directory, a .gguf file, a Hub id)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersDraft:
    """The target's own first layers, with its embedding, last norm and head."""

    layers: int
    """Number of layers kept, 1 or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyDraft:
    """A copy of the target with Gaussian noise on its weights."""

    scale: float
    """Standard deviation of the noise on a weight, in standard deviations of the parameter it belongs to; 0 or more."""

    seed: int
    """Seed of the noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StressDraft:
    """No model: the reference's own continuation, with tokens replaced at a seeded rate. Whoever runs it makes it."""

    rate: float
    """Share of proposed tokens that are replaced, 0 to 1."""

    seed: int
    """Seed of the replacements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NgramDraft:
    """No model: prompt lookup, what followed the last tokens of a text when they occurred in it before."""

    size: int
    """Number of tokens looked up, 1 or more."""


DerivedDraft = LayersDraft | NoisyDraft | StressDraft | NgramDraft

DEFAULT_NGRAM = 2
"""Tokens looked up by `ngram` without a number, as in transformers' prompt lookup."""


def is_derived(given: str) -> bool:
    """Say whether `given` is spelled as a draft that needs no second model (a folder named `ngram` is `./ngram`)."""
    return given == "ngram" or given.startswith(("layers:", "noisy:", "stress:", "ngram:"))


def is_model(given: str) -> bool:
    """Say whether `given` is spelled as a draft that has a forward, which some decoders call."""
    return not is_derived(given) or given.startswith(("layers:", "noisy:"))


def parse_draft(given: str, *, options: LoadOptions) -> ModelSource | DerivedDraft:
    """Return what the text of `--draft` names.

    Raises:
        UsageError: a number that is not one or is out of range, or a revision for something not on the Hub.
        ModelError: no such family, path, or possible Hub id.
    """
    if not is_derived(given):
        return _model_source(given, options)
    if options.draft_revision is not None:
        raise UsageError(
            f"'{given}' is derived from the target and has no revision of its own",
            where="--draft-revision",
            way_out="leave it out, or use --revision for the target",
        )
    form, _, number = given.partition(":")
    match form:
        case "layers":
            return LayersDraft(layers=_layer_count(number, given))
        case "ngram":
            return NgramDraft(size=_ngram_size(number, given))
        case "noisy":
            return NoisyDraft(scale=_number(number, given, at_most=math.inf), seed=options.seed)
        case _:
            return StressDraft(rate=_number(number, given, at_most=1.0), seed=options.seed)


def _model_source(given: str, options: LoadOptions) -> ModelSource:
    try:
        return parse_source(given, role="draft", revision=options.draft_revision)
    except ModelError as error:
        # Whoever mistyped a derived draft is helped by the forms of a draft, not by those of a model.
        if given.startswith("bundled:"):
            raise
        raise ModelError(error.message, where=error.where, way_out=DRAFT_FORMS) from error


def _layer_count(number: str, given: str) -> int:
    if not number.isdecimal() or int(number) < 1:
        raise UsageError(
            f"'{number}' is not a number of layers", where=f"--draft {given}", way_out="give 1 or more, as in layers:2"
        )
    return int(number)


def _ngram_size(number: str, given: str) -> int:
    if given == "ngram":
        return DEFAULT_NGRAM
    if not number.isdecimal() or int(number) < 1:
        raise UsageError(
            f"'{number}' is not a number of tokens", where=f"--draft {given}", way_out="give 1 or more, as in ngram:3"
        )
    return int(number)


def _number(number: str, given: str, *, at_most: float) -> float:
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if math.isfinite(value) and 0 <= value <= at_most:
        return value
    form = given.partition(":")[0]
    allowed = "0 or more, as in noisy:0.12" if form == "noisy" else "a share from 0 to 1, as in stress:0.3"
    raise UsageError(f"'{number}' will not do for {form}", where=f"--draft {given}", way_out=f"give {allowed}")
