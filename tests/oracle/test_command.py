"""`specaudit replay --target`: the right verdict, words and exit code for what a recording can hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from specaudit.core.records import UnitTiming
from specaudit.core.run_directory import RunDirectory
from tests.cli.command import specaudit
from tests.core.cases import made_case
from tests.oracle.recordings import END, changed, greedy_lines, judged, replaced
from tests.replay.recordings import verdicts, without, write

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from tests.cli.command import Result

pytestmark = pytest.mark.usefixtures("in_folder")


def words(result: Result) -> str:
    return " ".join(result.stdout.split())


def report_of(*arguments: Any, **options: Any) -> dict[str, Any]:
    result = judged(*arguments, "--json", "report.json", **options)
    document: dict[str, Any] = json.loads(Path("report.json").read_text(encoding="utf-8"))
    assert document["exit_code"] == result.exit_code
    return document


def test_greedy_outputs_pass(snapshot: SnapshotAssertion) -> None:
    result = judged(greedy_lines())
    assert result.exit_code == 0
    assert str(result) == snapshot


def test_a_replaced_token_without_a_floor_is_no_evidence(snapshot: SnapshotAssertion) -> None:
    result = judged(replaced(1, 4, 77))
    assert result.exit_code == 3
    assert str(result) == snapshot


def test_a_replaced_token_above_the_floor_is_a_fault(snapshot: SnapshotAssertion) -> None:
    result = judged(replaced(1, 4, 77), reference=greedy_lines())
    assert result.exit_code == 1
    assert str(result) == snapshot


def test_the_floor_decides_between_tie_undecided_and_fault() -> None:
    recording = replaced(2, -1, 77)
    (spoilt,) = (one for one in report_of(recording)["outputs"] if one["departures"])
    (departure,) = spoilt["departures"]
    assert (spoilt["record_id"], departure["index"], departure["token_id"]) == ("q2", 11, 77)
    # The reference departs at another place by a regret that the sweep picks to lie in each zone of it.
    found = {}
    for token in range(4, 400, 9):
        reference = replaced(0, -1, token)
        document = report_of(recording, reference=reference)
        if document["floor"] is None or not document["floor"]["departures"]:
            continue
        ratio = departure["regret"] / document["floor"]["maximum"]
        expected = (0, "tie") if ratio <= 1 else (3, "tie-if-certified") if ratio <= 4 else (1, "never-a-tie")
        zones = [one["zone"] for output in document["outputs"] for one in output["departures"]]
        assert (document["exit_code"], *zones) == expected
        found[expected] = document
        if len(found) == 3:
            break
    assert len(found) >= 2
    assert found[0, "tie"]["verdict"] == "equal-outputs"


def test_text_after_end_of_sequence_is_a_fault_whatever_the_floor() -> None:
    recording = changed(4, output_ids=[END, 5, 6])
    for reference in (None, greedy_lines()):
        result = judged(recording, reference=reference)
        assert verdicts(result) == ["specaudit: failed (exit 1): 1 of 5 go on after end of sequence"]
        assert "ends at token 0 of the output, and 2 more tokens follow" in words(result)
    # its tokens are not judged, unless the engine was told to go on
    assert report_of(recording)["totals"]["departures"] == 0
    assert report_of(recording, "--ignore-eos")["outputs"][4]["tokens"] == 3
    assert judged(changed(4, output_ids=[END, END])).exit_code == 1


def test_a_missed_end_of_sequence_is_a_departure() -> None:
    document = report_of(changed(4, output_ids=[5, 6]), reference=greedy_lines())
    first = document["outputs"][4]["departures"][0]
    assert (first["index"], first["argmax_id"], first["zone"]) == (0, END, "never-a-tie")
    assert document["exit_code"] == 1


def test_what_ends_a_text_can_be_given() -> None:
    ids = greedy_lines()[0]["output_ids"]
    assert judged(greedy_lines(), "--eos-ids", str(ids[2])).exit_code == 1
    assert judged(greedy_lines()[:1], "--ignore-eos").exit_code == 0


def test_a_short_output_passes_and_is_mentioned() -> None:
    result = judged(changed(1, output_ids=greedy_lines()[1]["output_ids"][:3]))
    assert result.exit_code == 0
    assert "1 output stops without end of sequence and before the longest (12 tokens)" in words(result)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"output_ids": None, "error": "HTTP 500"}, "HTTP 500"),
        ({"output_ids": []}, "the output is empty: there is no token to judge"),
        ({"prompt_ids": []}, "the prompt has no tokens"),
    ],
)
def test_what_cannot_be_judged_is_unmeasured(fields: dict[str, Any], reason: str) -> None:
    result = judged(changed(0, **fields), reference=greedy_lines())
    assert verdicts(result) == ["specaudit: no-evidence (exit 3): 1 of 5 unmeasured"]
    assert f"1 output: {reason}" in words(result)


BAD_REFERENCES = {
    "goes on after end of sequence": (
        changed(4, output_ids=[END, 5]),
        "1 of its 5 outputs go on after end of sequence",
    ),
    "another model's": ([{**line, "output_ids": [70, 71, 72]} for line in greedy_lines()], "another model, or sampled"),
    "empty": ([{**line, "output_ids": []} for line in greedy_lines()], "has a token that could be judged"),
}


@pytest.mark.parametrize("name", BAD_REFERENCES)
def test_a_reference_at_fault_excuses_and_accuses_nothing(name: str) -> None:
    reference, problem = BAD_REFERENCES[name]
    result = judged(replaced(1, 4, 77), reference=reference)
    assert result.exit_code == 3
    assert "unknown: the reference gives none: " in words(result)
    assert problem in words(result)
    assert judged(greedy_lines(), reference=reference).exit_code == 0  # nothing has to be excused


def test_the_oracle_can_judge_in_another_type() -> None:
    result = judged(greedy_lines(), "--oracle-dtype", "float64", "--dtype", "float32")
    assert result.exit_code == 0
    assert "raw logits in float64" in words(result)
    wide, narrow = (report_of(replaced(1, 4, 77), "--oracle-dtype", name) for name in ("float64", "float32"))
    difference = wide["totals"]["largest_regret"] - narrow["totals"]["largest_regret"]
    assert 0 < abs(difference) < 1e-4
    assert (wide["target"]["dtype"], wide["target"]["oracle_dtype"]) == ("float32", "float64")


def test_json_on_standard_output_is_json_alone() -> None:
    result = judged(replaced(1, 4, 77), "--json", "-", reference=greedy_lines())
    document = json.loads(result.stdout)
    assert (document["verdict"], document["totals"]["outputs"]) == ("failed", 5)
    assert document["recordings"] == {"candidate": "a.jsonl", "reference": "b.jsonl"}
    assert document["floor"]["tokens"] == document["totals"]["tokens"] == 49
    assert "specaudit: failed" in result.stderr


def test_samples_of_a_run_are_judged() -> None:
    line = greedy_lines()[0]
    case = made_case(prompt_id="a", output=tuple(line["output_ids"]), prompt_ids=tuple(line["prompt_ids"]))
    timing = UnitTiming(
        decoder="eqspec", batch_size=4, draft_tokens=4, seed=0, unit=0, seconds=1.0, generated_tokens=12
    )
    RunDirectory.create(Path("run")).append_unit([case], timing)
    assert specaudit("replay", "run", "--target", "bundled:llama").exit_code == 0


TEXT = [{**line, "text": "words"} for line in without(greedy_lines(), "output_ids")]
BAD = {
    "texts alone": (TEXT, (), "error: a.jsonl:1: no output_ids: with --target, tokens are judged"),
    "prompts as text": (
        [{**line, "prompt": "words"} for line in without(greedy_lines(), "prompt_ids")],
        (),
        "a.jsonl:1: no prompt_ids",
    ),
    "an id of another vocabulary": (replaced(2, 0, 99_999), (), "error: a.jsonl:3: it holds token id 99999"),
    "an unknown type": (greedy_lines(), ("--oracle-dtype", "float8"), "error: --oracle-dtype: unknown type 'float8'"),
    "half precision for the oracle": (greedy_lines(), ("--oracle-dtype", "bfloat16"), "error: --oracle-dtype"),
    "an unknown dtype": (greedy_lines(), ("--dtype", "float8"), "error: --dtype: unknown dtype"),
    "an unknown device": (greedy_lines(), ("--device", "toaster"), "cannot use the device 'toaster'"),
    "a revision of a local model": (greedy_lines(), ("--revision", "x"), "error: --revision"),
    "both ways of ending": (greedy_lines(), ("--ignore-eos", "--eos-ids", "3"), "exclude each other"),
    "ends that are no ids": (greedy_lines(), ("--eos-ids", "x"), "error: --eos-ids: 'x' is not a token id"),
    "no threads": (greedy_lines(), ("--threads", "0"), "error: --threads"),
    "details below zero": (greedy_lines(), ("--details", "-1"), "error: --details"),
    "itself as reference": (greedy_lines(), ("--reference", "a.jsonl"), "outputs cannot excuse themselves"),
    "a report that cannot be written": (greedy_lines(), ("--json", "a.jsonl/x"), "cannot write to"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_with_a_way_out(name: str) -> None:
    recording, options, message = BAD[name]
    result = judged(recording, *options)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert "fault in specaudit" not in result.stderr


@pytest.mark.parametrize("target", ["bundled:nothing", "./nowhere", "noisy:0.1", "\x1b[2J"])
def test_a_target_that_is_none(target: str) -> None:
    result = specaudit("replay", write("a.jsonl", greedy_lines()), "--target", target)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert "\x1b" not in result.stderr


def test_options_of_a_target_need_one() -> None:
    name = write("a.jsonl", greedy_lines())
    result = specaudit("replay", name, "--reference", name, "--dtype", "float32", "--ignore-eos")
    assert result.exit_code == 2
    assert "--ignore-eos and --dtype need a target" in result.stderr
    result = specaudit("replay", name)
    assert result.exit_code == 2
    assert "--reference FILE, or --target MODEL" in result.stderr


HOSTILE = "q\x1b[2J\u202e[red]\n"


def test_hostile_texts_reach_no_terminal() -> None:
    spoilt = [{**line, "id": line["id"] + HOSTILE, "model": HOSTILE} for line in replaced(1, 4, 77)]
    spoilt[0] |= {"output_ids": None, "error": HOSTILE}
    for result in (judged(spoilt), judged(spoilt, reference=greedy_lines())):
        assert result.exit_code in {1, 3}
        assert not {"\x1b", "\u202e"} & set(result.stdout + result.stderr)
        assert r"\u{1b}" in result.stdout
