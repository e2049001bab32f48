"""Random mutants on a model: which are caught, which change nothing, and which survive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from specaudit.core.selftest_outcomes import Fate, MutantOutcome
from specaudit.core.vocabulary import Sync
from specaudit.faults.authority import uncached_logits
from specaudit.faults.decoder import FaultyDecoder
from specaudit.faults.fault import End, Layout
from specaudit.faults.mutants import draw_mutant, injection_of
from specaudit.faults.sight import has_windows
from specaudit.selftest.audited import audit, ends_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.checks.judgement import Judgement
    from specaudit.faults.trials import Trial
    from specaudit.selftest.subjects import Subject

TOLERANCE = 1e-8
"""Largest difference of logits in float64 that rounding may explain: batches and blocks differ by about 1e-13."""


def try_mutant(number: int, subject: Subject, *, seed: int) -> MutantOutcome:
    """Draw a mutant, make it in the decoder, and say what became of it."""
    trial = subject.trials[End.NOWHERE]
    assert trial is not None  # noqa: S101 (a trial without an end always exists)
    layers = subject.model.config.num_hidden_layers
    layouts = tuple(one for one in Layout if one is not Layout.STATIC or not has_windows(subject.model))
    mutant = draw_mutant(number, seed=seed, layouts=layouts, layers=layers, rows=len(trial.prompts))
    decoder = FaultyDecoder(layout=mutant.layout, injection=injection_of(mutant))
    audited = audit(
        decoder.decode,
        subject.model,
        trial.draft(mutant.replaced, seed=seed),
        trial,
        restricted=ends_of(subject),
    )
    is_changed = changes_logits(subject, trial, decoder, audited.outputs)
    is_certified = _are_certified(audited.judgements)
    return MutantOutcome(
        number=number,
        description=mutant.description,
        fate=Fate.CAUGHT if not is_certified else Fate.SURVIVED if is_changed else Fate.HARMLESS,
        changes_logits=is_changed,
        changes_output=audited.outputs != trial.expected,
        seen_by=tuple(name for name, judgements in audited.by_layers.items() if not _are_certified(judgements)),
    )


def _are_certified(judgements: Sequence[Judgement]) -> bool:
    return all(judgement.sync is Sync.CERTIFIED for judgement in judgements)


def changes_logits(subject: Subject, trial: Trial, decoder: FaultyDecoder, outputs: Sequence[Sequence[int]]) -> bool:
    """Return whether the logits that chose some emitted token are not those of an uncached forward."""
    for prompt, output, chosen in zip(trial.prompts, outputs, decoder.chosen_logits, strict=True):
        truth = uncached_logits(subject.model, prompt, output)
        if not torch.allclose(torch.stack(chosen), truth, rtol=0, atol=TOLERANCE):
            return True
    return False
