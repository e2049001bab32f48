"""Whole reports as they are printed, 80 columns, without colour."""

from __future__ import annotations

import re
from dataclasses import replace
from io import BytesIO, StringIO, TextIOWrapper
from unicodedata import category

import pytest
from rich.cells import cell_len
from rich.console import Console

from specaudit.core.gate import decide
from specaudit.core.summary import RunModels, summarise
from specaudit.report.failures import shown_token_ids, worst_failures
from specaudit.report.terminal import print_report
from tests.report.sample_runs import (
    DIVERGED_IDS,
    HOSTILE_TEXTS,
    MODELS,
    PLAN,
    REFERENCE_IDS,
    SampleRun,
    arm,
    case,
    clean_cases,
    clean_run,
    corrupted_run,
    failing_run,
    finding,
    hostile_run,
    timing,
    unmeasured_run,
    unobserved_run,
)

RUNS = {
    "clean": clean_run,
    "failing": failing_run,
    "unmeasured": unmeasured_run,
    "unobserved": unobserved_run,
    "hostile": hostile_run,
    "corrupted": corrupted_run,
}


def _print(console: Console, run: SampleRun, *, planned: int | None = None, interrupted: bool = False, **options):
    decision = decide(run.cases, planned=planned or len(run.cases), interrupted=interrupted)
    options = {"run_directory": "runs/20260101-120000-bundled", "token_texts": HOSTILE_TEXTS, **options}
    models = options.pop("models", MODELS)
    print_report(console, PLAN, models, summarise(run.cases, run.timings), run.cases, decision, **options)


def _report(run: SampleRun, *, width: int = 80, **options) -> str:
    """Return a report as printed, without the blanks that a table leaves at the end of a line."""
    file = StringIO()
    _print(Console(file=file, width=width, color_system=None), run, **options)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


@pytest.mark.parametrize("name", RUNS)
def test_report(name: str, snapshot) -> None:
    assert _report(RUNS[name]()) == snapshot


def test_an_interval_by_batch_is_printed_where_there_are_batches_enough() -> None:
    of = arm("bsp", 4)
    cases = [case(of, number, output_ids=DIVERGED_IDS if number % 24 < 4 else REFERENCE_IDS) for number in range(96)]
    run = SampleRun(cases=tuple(cases), timings=())
    assert "a first wrong token in 16 of 1136 tokens (0.87-2.3 % a token); identical 66.7-95.8 % by batch;" in " ".join(
        _report(run).split()
    )
    assert "by batch" not in _report(SampleRun(cases=tuple(cases[:80]), timings=()))


def test_draft_lengths_and_seeds_tell_arms_apart_where_there_are_several() -> None:
    arms = [arm("bsp", 4, draft_tokens, seed) for draft_tokens in (4, 8) for seed in (0, 1)]
    cases = [case(of, n, output_ids=DIVERGED_IDS, category="math") for of in arms for n in range(5)]
    report = _report(SampleRun(cases=tuple(cases), timings=()), details=0)
    assert [line.partition(": ")[0] for line in report.splitlines() if " a first wrong token in " in line] == [
        "bsp, batch 4, K 4, seed 0", "bsp, batch 4, K 4, seed 1", "bsp, batch 4, K 8, seed 0", "bsp, batch 4, K 8, seed 1",
    ]  # fmt: skip
    (heading,) = [line for line in report.splitlines() if line.startswith("identical by category")]
    assert heading.split()[3:] == ["bsp", "b4", "k4", "s0", "bsp", "b4", "k4", "s1", "bsp", "b4", "k8", "s0"]


def test_categories_beyond_the_width_and_the_most_are_counted() -> None:
    cases = []
    for decoder in ("bsp", "a_decoder_with_a_long_name", "dsd", "eqspec"):
        of = arm(decoder, 32)
        for number in range(17 * 30):
            output = DIVERGED_IDS if number % 17 < number // 17 and decoder != "eqspec" else REFERENCE_IDS
            category = f"category number {number % 17}"
            cases.append(case(of, number, output_ids=output, category=category, prompt_id=f"p{number}"))
    lines = _report(SampleRun(cases=tuple(cases), timings=()), details=0).splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("identical by category"))
    assert lines[start].split() == ["identical", "by", "category", "bsp", "b32", "a_decoder_with_a_…", "b32"]
    assert lines[start + 1].split() == ["category", "number", "0", "1/30", "0.6-16.7", "%", "1/30", "0.6-16.7", "%"]
    assert lines[start + 15] == "1 arm and 3 categories not shown; the JSON report has all"
    assert not any("…" in line for line in lines[start + 1 : start + 15])
    assert max(map(len, lines[start : start + 16])) <= 80


def test_report_of_a_stored_run_without_token_texts(snapshot) -> None:
    assert _report(failing_run(), token_texts=None, run_directory=None, details=2) == snapshot


def test_report_with_several_draft_lengths(snapshot) -> None:
    arms = [arm("hf-prompt-lookup", 32, draft_tokens) for draft_tokens in (4, 16)]
    cases = [one for of in arms for one in clean_cases(of, 150)]
    assert _report(SampleRun(cases=tuple(cases), timings=tuple(timing(of, seconds=0.003) for of in arms))) == snapshot


def test_report_in_ascii(snapshot) -> None:
    raw = BytesIO()
    file = TextIOWrapper(raw, encoding="ascii", errors="strict", write_through=True)
    _print(Console(file=file, width=80, color_system=None), hostile_run())
    assert "\n".join(line.rstrip() for line in raw.getvalue().decode("ascii").splitlines()) == snapshot


@pytest.mark.parametrize("name", RUNS)
def test_a_report_fits_eighty_columns(name: str) -> None:
    *lines, verdict = _report(RUNS[name](), run_directory=None).splitlines()
    assert max(cell_len(line) for line in (*lines, verdict)) <= 80
    assert verdict.startswith("specaudit: ")


def test_wide_counts_are_not_cut() -> None:
    of = arm("hf-prompt-lookup", 128, 16)
    other = arm("hf-prompt-lookup", 128, 4)
    many = [replace(one, proposed_tokens=9_000, accepted_tokens=4_567) for one in clean_cases(of, 99)]
    run = SampleRun(cases=(*many, *clean_cases(other)), timings=(timing(of, seconds=0.01, tokens=123_456),))
    report = _report(run)
    assert "…" not in report
    assert "452133/891000" in report
    assert max(cell_len(line) for line in report.splitlines()[:-1]) <= 80


def test_a_narrow_terminal_loses_no_number() -> None:
    report = _report(failing_run(), width=50)
    assert "50.5-89.8 %" in report
    assert "39.6-50.5 %" in report


@pytest.mark.parametrize("name", RUNS)
def test_only_rich_writes_control_sequences(name: str) -> None:
    file = StringIO()
    _print(Console(file=file, width=80, force_terminal=True, color_system="truecolor"), RUNS[name]())
    text = re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue())
    assert not [character for character in text if category(character) in {"Cc", "Cf"} and character != "\n"]
    assert "\x1b]8" not in file.getvalue()  # no hyperlinks


def test_colour_changes_no_word(monkeypatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    file = StringIO()
    _print(Console(file=file, width=80, force_terminal=True, color_system="truecolor"), failing_run())
    plain = re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue())
    assert "\x1b[31m" in file.getvalue()
    assert "\n".join(line.rstrip() for line in plain.splitlines()) == _report(failing_run())


def test_no_color_is_obeyed(monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    file = StringIO()
    _print(Console(file=file, width=80, force_terminal=True), failing_run())
    assert "\x1b[31m" not in file.getvalue()


def test_an_interrupted_run_says_how_far_it_came() -> None:
    report = _report(clean_run(), planned=144, interrupted=True)
    assert report.endswith("specaudit: interrupted (exit 130): 64 of 144 cases done, no finding among them")
    assert "0 of 16 failed" not in report
    assert "bundled: 24 prompts planned, 16 done, at most" in " ".join(_report(clean_run(), planned_prompts=24).split())
    nothing = _report(SampleRun(cases=(), timings=()), planned=8, interrupted=True, planned_prompts=8)
    assert "bundled: 8 prompts planned, 0 done, at most" in " ".join(nothing.split())


def test_an_arm_that_measured_or_saw_nothing_has_dashes_and_no_speed() -> None:
    of, other = arm("mine.py:decode", 4), arm("eqspec", 4)
    crashed = tuple(case(of, n, output_ids=None, error="RuntimeError: boom") for n in range(16))
    partly = tuple(case(other, n, sync_reason="a step had no position ids" if n < 3 else None) for n in range(16))
    timings = (timing(of, tokens=0), timing(other))
    lines = _report(SampleRun(cases=(*crashed, *partly), timings=timings)).splitlines()
    (dashes,) = [line for line in lines if line.startswith("mine.py:decode")]
    assert dashes.split()[2:] == ["16", "-", "-", "-", "-", "-", "-"]
    (counts,) = [line for line in lines if line.startswith("eqspec ")]
    assert counts.split()[-2:] == ["0/13", "0/13"]


def test_a_run_without_cases_still_has_a_verdict() -> None:
    report = _report(SampleRun(cases=(), timings=()), planned=8)
    assert report.endswith("specaudit: no-evidence (exit 3): 8 of 8 cases not run")


def test_ignored_settings_are_named() -> None:
    target = replace(MODELS.target, ignored_settings=("repetition_penalty=1.3",), eos_token_ids=())
    report = _report(clean_run(), models=RunModels(target=target, draft=None))
    assert "repetition_penalty=1.3" in report
    assert "end of sequence ignored" in " ".join(report.split())
    assert "\ndraft" not in report


def test_a_run_that_never_reached_the_end_says_what_it_did_not_test() -> None:
    cut = REFERENCE_IDS[:8]
    run = SampleRun(
        cases=tuple(case(arm("eqspec", 4), n, output_ids=cut, reference_ids=cut) for n in range(4)), timings=()
    )
    report = " ".join(_report(run).split())
    assert "reference: reached end of sequence in 0 of 4 prompts: how decoders end an output was not tested;" in report
    assert "raise --max-new-tokens" in report
    ignored = RunModels(target=replace(MODELS.target, eos_token_ids=()), draft=None)
    assert "was not tested; it is ignored" in " ".join(_report(run, models=ignored).split())


def test_a_reason_names_its_arms_where_there_are_several() -> None:
    arms = [arm(decoder, size) for decoder in ("eqspec", "bsp") for size in (1, 4)]
    cases = [case(of, n, output_ids=None, error="RuntimeError: boom") for of in arms[:3] for n in range(2)]
    several = SampleRun(cases=(*cases, *clean_cases(arms[3], 2)), timings=())
    assert "  6 cases, eqspec at batch 1, 4, bsp at batch 1: RuntimeError: boom" in _report(several).splitlines()
    assert "  2 cases: RuntimeError: boom" in _report(SampleRun(cases=tuple(cases[:2]), timings=())).splitlines()


def test_no_details_still_counts_the_failures() -> None:
    assert "5 failing cases not shown" in _report(failing_run(), details=0)


def test_details_are_spread_over_the_arms() -> None:
    run = failing_run()
    summaries = summarise(run.cases, run.timings)
    chosen = [one.case_id for one in worst_failures(summaries, run.cases, 10)]
    assert chosen == [
        "eqspec/b4/k4/s0/chat-06",
        "bsp/b4/k4/s0/chat-01",
        "bsp/b4/k4/s0/chat-02",
        "bsp/b4/k4/s0/chat-09",
        "bsp/b4/k4/s0/chat-12",
    ]
    assert [one.case_id for one in worst_failures(summaries, run.cases, 2)] == chosen[:2]
    assert worst_failures(summaries, run.cases, 0) == ()


def test_cause_and_effect_lead_then_the_earliest_finding_then_divergences() -> None:
    of = arm("bsp", 4)
    cases = [
        case(of, 0, output_ids=DIVERGED_IDS),
        case(of, 1, output_ids=DIVERGED_IDS[:3]),
        case(of, 2, findings=(finding(step=7),)),
        case(of, 3, findings=(finding(step=3),)),
        case(of, 9, output_ids=DIVERGED_IDS, findings=(finding(step=8),)),
    ]
    chosen = worst_failures(summarise(cases, []), cases, 9)
    assert [one.prompt_id for one in chosen] == ["chat-09", "chat-03", "chat-02", "chat-01", "chat-00"]


def test_token_ids_to_decode_are_those_near_the_divergences_shown() -> None:
    run = failing_run()
    ids = shown_token_ids(summarise(run.cases, run.timings), run.cases, 3)
    assert ids == {*REFERENCE_IDS, *DIVERGED_IDS}
    assert shown_token_ids((), (), 3) == frozenset()
