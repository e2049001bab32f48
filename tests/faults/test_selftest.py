"""A slice of the self-test: every fault is caught where it is made and named right, and the self-test itself can fail."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

import pytest

from specaudit.checks.judgement import Judgement
from specaudit.core.selftest_outcomes import Fate, Outcome
from specaudit.core.vocabulary import Cause, Sync
from specaudit.faults.applicability import inapplicable
from specaudit.faults.catalogue import FAULTS
from specaudit.faults.decoder import FaultyDecoder
from specaudit.faults.fault import End, Group, Layout
from specaudit.faults.mutants import draw_mutant
from specaudit.faults.trials import DRAFT_TOKENS, NEW_TOKENS
from specaudit.selftest import audited as auditing
from specaudit.selftest.audited import audit
from specaudit.selftest.cells import decoder_with, try_fault
from specaudit.selftest.mutation import changes_logits, try_mutant
from specaudit.selftest.plan import audit_subject, choose_faults
from specaudit.selftest.subjects import Subject, random_subject
from specaudit.trace.recorder import Recorder
from tests.cli.command import specaudit

if TYPE_CHECKING:
    from pathlib import Path

ARCHITECTURES = ("llama", "opt", "mistral", "gemma3")
"""Rotary, learned and counted positions; windows in all layers and in some."""


@cache
def subject(architecture: str) -> Subject:
    return random_subject(architecture)


def test_every_cause_that_a_decoder_can_have_is_covered() -> None:
    causes = {cause for fault in FAULTS.values() for cause in fault.causes}
    assert set(Cause) - causes == {Cause.ROUNDING_TIE, Cause.UNEXPLAINED}
    assert {fault.group for fault in FAULTS.values()} == set(Group)
    assert len(FAULTS) >= 50


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("group", list(Group))
def test_faults_are_caught_and_named_right(architecture: str, group: Group) -> None:
    for fault in choose_faults([group.value]):
        for layout in Layout:
            cell = try_fault(fault, layout, subject(architecture), seed=0)
            assert cell.outcome in {Outcome.RIGHT, Outcome.INAPPLICABLE}, cell
            assert all(not row.delay for row in cell.rows), cell


@pytest.mark.parametrize("architecture", ["llama", "opt", "mistral", "gemma3"])
def test_what_is_inapplicable_is_harmless_or_refused(architecture: str) -> None:
    under_test = subject(architecture)
    tried = 0
    for fault in FAULTS.values():
        for layout in Layout:
            if inapplicable(fault, layout, under_test.model) is None:
                continue
            trial, decoder = under_test.trials[fault.end], decoder_with(fault, layout)
            assert trial is not None
            tried += 1
            draft = trial.draft(fault.replaced, seed=0)
            try:
                result = audit(decoder.decode, under_test.model, draft, trial)
            except ValueError:
                with pytest.raises(ValueError, match=r"static cache|refilled|moved together"):
                    audit(decoder_with(fault, layout).decode, under_test.model, draft, trial)
                continue
            assert result.outputs == trial.expected
            assert {judgement.sync for judgement in result.judgements} == {Sync.CERTIFIED}
            assert not changes_logits(under_test, trial, decoder, result.outputs)
    assert tried >= 15


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_legal_variants_are_certified(architecture: str) -> None:
    outcome = audit_subject(subject(architecture), (), mutants=0, seed=0, on_step=lambda: None)
    assert [variant for variant in outcome.variants if variant.is_tried and not variant.is_certified] == []
    assert sum(variant.is_tried for variant in outcome.variants) >= 8


@pytest.mark.parametrize("architecture", ["llama", "gemma3", "gpt-neox"])
def test_no_mutant_survives(architecture: str) -> None:
    outcomes = [try_mutant(number, subject(architecture), seed=1) for number in range(20)]
    assert [outcome for outcome in outcomes if outcome.fate is Fate.SURVIVED] == []
    assert sum(outcome.fate is Fate.CAUGHT for outcome in outcomes) > 10
    assert any(set(outcome.seen_by) == {"all"} for outcome in outcomes)  # the ends alone are blind to some


def test_mutants_can_be_made_again() -> None:
    drawn = [draw_mutant(number, seed=3, layouts=tuple(Layout), layers=3, rows=3) for number in range(50)]
    assert drawn == [draw_mutant(number, seed=3, layouts=tuple(Layout), layers=3, rows=3) for number in range(50)]
    assert len({mutant.operation for mutant in drawn}) == 6
    assert len({mutant.kind for mutant in drawn}) == 3
    assert drawn != [draw_mutant(number, seed=4, layouts=tuple(Layout), layers=3, rows=3) for number in range(50)]


def test_a_recorder_can_look_at_some_layers_alone() -> None:
    under_test = subject("gemma3")
    trial, decoder = under_test.trials[End.NOWHERE], FaultyDecoder(layout=Layout.CONTIGUOUS)
    assert trial is not None
    with Recorder(under_test.model, layers={0, 2}) as recorder:
        result = audit(decoder.decode, under_test.model, trial.draft(0.5, seed=0), trial)
    assert result.outputs == trial.expected
    assert {layer for step in recorder.trace.steps for view in step.views for layer in view.layers} == {0, 2}
    assert all(step.is_complete and not step.obstacles for step in recorder.trace.steps)


# The self-test can fail.


def test_a_blind_auditor_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(trace, streams, **options):
        return [Judgement(sync=Sync.CERTIFIED, reason=None, findings=()) for _ in streams]

    monkeypatch.setattr(auditing, "judge", blind)
    outcome = audit_subject(subject("llama"), choose_faults(["row-offset"]), mutants=8, seed=0, on_step=lambda: None)
    assert not outcome.is_passed
    assert {cell.outcome for cell in outcome.cells} == {Outcome.MISNAMED}  # on this model the output shows it
    assert any(mutant.fate is Fate.SURVIVED for mutant in outcome.mutants)


def test_an_auditor_that_objects_to_everything_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def objecting(trace, streams, **options):
        return [Judgement(sync=Sync.UNOBSERVED, reason="never sure", findings=()) for _ in streams]

    monkeypatch.setattr(auditing, "judge", objecting)
    outcome = audit_subject(subject("llama"), (), mutants=0, seed=0, on_step=lambda: None)
    assert not outcome.is_passed
    assert not any(variant.is_certified for variant in outcome.variants)


# The command.


def test_the_command_prints_a_matrix_in_80_columns(in_folder: Path) -> None:
    result = specaudit(
        "selftest",
        "--architecture",
        "llama,gpt-neox",
        "--faults",
        "row-offset,masks",
        "--mutants",
        "2",
        "--json",
        "all.json",
    )
    assert result.exit_code == 0, result.stdout
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-1] == "specaudit selftest: passed (exit 0)"
    assert any(line.split()[:5] == ["row-offset", "ok", "ok", "ok", "POS"] for line in lines)
    document = json.loads((in_folder / "all.json").read_text(encoding="utf-8"))
    assert [one["subject"] for one in document["subjects"]] == ["llama", "gpt-neox"]
    assert document["is_passed"] is True
    assert {cell["fault"] for cell in document["subjects"][0]["cells"]} == {
        fault.name for fault in choose_faults(["row-offset", "masks"])
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--faults", "row-ofset"), "did you mean 'row-offset'?"),
        (("--architecture", "lama"), "did you mean 'llama'?"),
        (("--mutants", "-1"), "give 0 or more"),
        (("--architecture", "llama", "--draft", "bundled:llama"), "leave it out"),
        (("--target", "bundled:nothing"), "bundled:"),
    ],
)
def test_usage_errors(arguments: tuple[str, ...], message: str) -> None:
    result = specaudit("selftest", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_trials_leave_room_for_several_rounds() -> None:
    assert NEW_TOKENS > 3 * (DRAFT_TOKENS + 1)
