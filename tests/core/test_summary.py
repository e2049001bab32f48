"""Sums over cases: what counts, what does not, and what `report.json` says."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from specaudit.core.gate import decide
from specaudit.core.report_document import report_document
from specaudit.core.shares import share
from specaudit.core.summary import ReasonCount, ReferenceEnds, first_violation, reference_ends, summarise
from specaudit.core.vocabulary import Check, RunVerdict, Symptom, Sync, Verdict
from tests.report.sample_runs import (
    DIVERGED_IDS,
    MODELS,
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


def test_arms_come_in_order_of_first_appearance() -> None:
    late, early = arm("eqspec", 4), arm("bsp", 1, 2)
    summaries = summarise([case(late, 0), case(early, 0), case(late, 1)], [])
    assert [(one.decoder, one.batch_size, one.draft_tokens, one.cases) for one in summaries] == [
        ("eqspec", 4, 4, 2),
        ("bsp", 1, 2, 1),
    ]


def test_nothing_gives_no_summary() -> None:
    assert summarise([], [timing(arm("eqspec", 4))]) == ()


def test_clean_arm() -> None:
    (summary,) = summarise(clean_cases(arm("eqspec", 4)), [timing(arm("eqspec", 4))])
    assert summary.verdict is RunVerdict.LOSSLESS
    assert summary.verdicts == {Verdict.IDENTICAL: 16, Verdict.TIE: 0, Verdict.DIVERGED: 0, Verdict.UNMEASURED: 0}
    assert summary.syncs == {Sync.CERTIFIED: 16, Sync.CLEAN: 0, Sync.VIOLATED: 0, Sync.UNOBSERVED: 0}
    assert summary.exact_match == share(16, 16)
    assert summary.mean_partial_match == 1
    assert summary.acceptance == share(9 * 16, 20 * 16)
    assert summary.violated == share(0, 16)
    assert summary.first_violation is None
    assert (summary.prompts, summary.calls) == (16, 4)
    assert summary.generated_tokens == 16 * len(REFERENCE_IDS)
    assert summary.tokens_per_second == 208 / 0.5
    assert not summary.is_failing


def test_failing_and_latent_arms() -> None:
    run = failing_run()
    clean, latent, broken = summarise(run.cases, run.timings)
    assert [one.is_failing for one in (clean, latent, broken)] == [False, True, True]
    assert latent.latent == 1
    assert latent.exact_match == share(16, 16)
    assert latent.violated == share(1, 16)
    assert broken.exact_match == share(12, 16)
    assert broken.mean_partial_match == pytest.approx((12 + 3 * 5 / len(REFERENCE_IDS) + 8 / len(REFERENCE_IDS)) / 16)
    assert broken.violated_checks == {Check.RECT: 3, Check.POS: 3, Check.KV: 0, Check.WARRANT: 0}
    assert broken.latent == 0


def test_first_violation_is_the_earliest_by_unit_call_step_row_and_query() -> None:
    of = arm("bsp", 1)
    in_later_unit = case(of, 4, output_ids=DIVERGED_IDS, findings=(finding(step=0),))
    in_later_call = case(of, 1, findings=(finding(step=0),))
    late_step, early_step = finding(step=2, row=0), finding(Check.RECT, step=1, row=1, query=3)
    first = case(of, 0, findings=(late_step, early_step, replace(early_step, query=4), replace(early_step, row=2)))
    violation = first_violation([in_later_unit, in_later_call, first])
    assert violation is not None
    assert (violation.case_id, violation.finding) == (first.case_id, early_step)


def test_findings_of_a_case_that_is_not_violated_are_left_out() -> None:
    stray = replace(case(arm("bsp", 1), 0), findings=(finding(),))
    assert first_violation([stray]) is None


def test_unmeasured_is_never_counted_as_zero() -> None:
    run = unmeasured_run()
    half, crashing = summarise(run.cases, run.timings)
    assert half.exact_match == share(8, 8)
    assert half.mean_partial_match == 1
    assert half.errors == (ReasonCount(reason="returned 3 rows for 4 prompts", count=8),)
    assert crashing.exact_match is None
    assert crashing.mean_partial_match is None
    assert crashing.acceptance is None
    assert crashing.violated is None
    assert crashing.tokens_per_second is None
    assert crashing.generated_tokens == 0
    assert crashing.verdict is RunVerdict.NO_EVIDENCE
    assert crashing.unobserved == ()
    assert [item.count for item in crashing.errors] == [16]


def test_unobserved_takes_no_part_in_the_share_of_violations() -> None:
    run = unobserved_run()
    seen, unseen = summarise(run.cases, run.timings)
    assert seen.violated == share(0, 13)
    assert unseen.violated is None
    assert seen.unobserved == (ReasonCount(reason="a step had no position ids", count=3),)
    assert {seen.verdict, unseen.verdict} == {RunVerdict.EQUAL_OUTPUTS}


def test_nothing_proposed_is_no_acceptance() -> None:
    drawn = replace(case(arm("eqspec", 1), 0), proposed_tokens=0, accepted_tokens=0)
    (summary,) = summarise([drawn], [])
    assert summary.acceptance is None


def test_times_of_units_are_pooled_and_no_time_is_no_speed() -> None:
    of = arm("eqspec", 4)
    timings = [timing(of, seconds=1, tokens=100), timing(of, seconds=3, tokens=100, unit=1)]
    assert summarise(clean_cases(of, 32), timings)[0].tokens_per_second == 50
    assert summarise(clean_cases(of, 16), timings)[0].tokens_per_second == 100  # nothing was measured in unit 1
    assert summarise(clean_cases(of), [timing(of, seconds=0)])[0].tokens_per_second is None


def test_two_prompts_of_the_same_ids_are_one_trial() -> None:
    first, second = clean_cases(arm("eqspec", 1), 2)
    (summary,) = summarise([first, replace(second, prompt_digest=first.prompt_digest)], [])
    assert (summary.cases, summary.prompts) == (2, 1)


def test_what_a_reader_sees_is_counted_by_arm() -> None:
    run = corrupted_run()
    bsp, dsd = summarise(run.cases, run.timings)
    assert {symptom.value: count for symptom, count in bsp.symptoms.items()} == {
        "repetition": 2, "symbols": 0, "truncation": 1, "empty": 0, "leak": 1, "prompt-echo": 0,
    }  # fmt: skip
    assert dsd.symptoms[Symptom.REPETITION] == 8
    assert {one.owner for one in bsp.displacements.values() if one.is_permuted} == {"chat-08", "chat-11"}
    assert bsp.hazard == share(
        6, sum(one.first_divergence.position + 1 if one.first_divergence else 17 for one in run.cases[:32])
    )
    assert bsp.rouge_blind == share(1, 6)
    assert bsp.rouge_not_scored == 0
    assert bsp.compared_as_text == 0


def test_categories_keep_their_order_and_prompts_without_one() -> None:
    run = corrupted_run()
    bsp, dsd = summarise(run.cases, run.timings)
    assert [(one.category, one.cases, one.exact_match) for one in dsd.categories] == [
        ("writing", 8, share(7, 8)),
        ("math", 8, share(0, 8)),
        ("translation", 8, share(6, 8)),
        (None, 8, share(7, 8)),
    ]
    assert [one.category for one in bsp.categories] == ["writing", "math", "translation", None]
    assert summarise(clean_run().cases, [])[0].categories == ()
    unmeasured = [replace(one, category="math") for one in unmeasured_run().cases]
    assert [(one.cases, one.exact_match) for one in summarise(unmeasured, [])[1].categories] == [(16, None)]


def test_interval_by_batch_needs_batches() -> None:
    of = arm("eqspec", 4)
    cases = [
        case(of, number, output_ids=DIVERGED_IDS if number in {0, 1, 2, 3, 9} else REFERENCE_IDS)
        for number in range(100)
    ]
    (summary,) = summarise(cases, [])
    assert (summary.calls, summary.exact_match) == (25, share(95, 100))
    assert summary.exact_match_by_call is not None
    assert summary.exact_match_by_call.low < share(95, 100).low
    assert summarise(cases[:80], [])[0].exact_match_by_call is None  # 20 batches
    (alone,) = summarise([replace(one, batch_size=1, unit=number) for number, one in enumerate(cases)], [])
    assert alone.exact_match_by_call is None


def test_what_rouge_cannot_score_is_no_blind_spot() -> None:
    of = arm("eqspec", 1)
    silent = replace(case(of, 0, output_ids=DIVERGED_IDS), rouge_l=None)
    passing = replace(case(of, 1, output_ids=DIVERGED_IDS), rouge_l=0.95)
    caught = replace(case(of, 2, output_ids=DIVERGED_IDS), rouge_l=0.9)
    (summary,) = summarise([silent, passing, caught, case(of, 3)], [])
    assert (summary.rouge_blind, summary.rouge_not_scored) == (share(1, 2), 1)
    assert summarise([silent], [])[0].rouge_blind is None


@pytest.mark.parametrize("build", [clean_run, corrupted_run, failing_run, unmeasured_run, unobserved_run, hostile_run])
def test_report_document_is_plain_json(build) -> None:
    run: SampleRun = build()
    document = report_document(
        summarise(run.cases, run.timings),
        run.cases,
        decide(run.cases, planned=len(run.cases)),
        planned_cases=len(run.cases),
        models=MODELS,
    )
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_report_document_names_what_to_look_at() -> None:
    run = failing_run()
    decision = decide(run.cases, planned=50)
    document = report_document(summarise(run.cases, run.timings), run.cases, decision, planned_cases=50)
    assert document["schema_version"] == 1
    assert (document["verdict"], document["exit_code"]) == ("failed", 1)
    assert document["failing_case_ids"] == [
        "eqspec/b4/k4/s0/chat-06",
        "bsp/b4/k4/s0/chat-01",
        "bsp/b4/k4/s0/chat-02",
        "bsp/b4/k4/s0/chat-09",
        "bsp/b4/k4/s0/chat-12",
    ]
    assert document["unmeasured_case_ids"] == []
    assert document["totals"]["planned_cases"] == 50
    assert document["totals"]["verdicts"] == {"identical": 44, "tie": 0, "diverged": 4, "unmeasured": 0}
    assert document["totals"]["latent"] == 1
    assert document["models"] is None
    assert document["arms"][2]["exact_match"]["count"] == 12
    assert document["arms"][2]["first_violation"]["case_id"] == "bsp/b4/k4/s0/chat-01"


def test_report_document_leaves_null_where_nothing_was_measured() -> None:
    run = unmeasured_run()
    decision = decide(run.cases, planned=len(run.cases))
    document = report_document(summarise(run.cases, run.timings), run.cases, decision, planned_cases=len(run.cases))
    crashing = document["arms"][1]
    assert crashing["exact_match"] is None
    assert crashing["violated"] is None
    assert len(document["unmeasured_case_ids"]) == 24
    assert document["failing_case_ids"] == []


def test_references_are_counted_once_a_prompt_and_only_where_there_is_one() -> None:
    cut, none = REFERENCE_IDS[:5], ()
    cases = [
        case(of, number, reference_ids=reference, output_ids=reference or None)
        for of in (arm("eqspec", 1), arm("bsp", 4))
        for number, reference in enumerate([REFERENCE_IDS, cut, cut, none])
    ]
    assert reference_ends(cases, {2, 3}) == ReferenceEnds(prompts=3, at_eos=1)
    assert reference_ends(cases, ()) == ReferenceEnds(prompts=3, at_eos=0)
    summaries, decision = summarise(cases, []), decide(cases, planned=8)
    totals = report_document(summaries, cases, decision, planned_cases=8, models=MODELS)["totals"]
    assert (totals["references"], totals["references_at_eos"]) == (3, 1)
    totals = report_document(summaries, cases, decision, planned_cases=8)["totals"]
    assert totals["references_at_eos"] is None  # without a model nobody knows what ends a text
