"""`specaudit replay`: the right verdict, words and exit code for every way in which two recordings can differ."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from specaudit.core.records import UnitTiming
from specaudit.core.run_directory import RunDirectory
from tests.cli.command import specaudit
from tests.core.cases import made_case
from tests.replay.recordings import lines, replay, texts_only, verdicts, without, write

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

pytestmark = pytest.mark.usefixtures("in_folder")


def changed(number: int, recording: list[dict[str, Any]] | None = None, **fields: Any) -> list[dict[str, Any]]:
    """Return a recording with fields of one line replaced."""
    copied = copy.deepcopy(lines() if recording is None else recording)
    copied[number] |= fields
    return copied


def swapped(one: int, other: int) -> list[dict[str, Any]]:
    recording = lines()
    for field in ("output_ids", "text"):
        recording[one][field], recording[other][field] = recording[other][field], recording[one][field]
    return recording


def words(result: Any) -> str:
    """Return what was printed, as one line."""
    return " ".join(result.stdout.split())


def test_equal_recordings_pass_and_say_what_was_not_seen(snapshot: SnapshotAssertion) -> None:
    result = replay(lines(), lines())
    assert result.exit_code == 0
    assert str(result) == snapshot


def test_pairs_are_made_by_id_and_not_by_line() -> None:
    assert replay(lines()[::-1], lines()).exit_code == 0
    shifted = [{**line, "id": f"q{(number + 1) % 6}"} for number, line in enumerate(lines())]
    assert replay(shifted, lines()).exit_code == 3  # the prompts differ


def test_one_changed_token() -> None:
    result = replay(changed(2, output_ids=[22, 11, 99, 13, 32, 14, 2]), lines())
    assert result.exit_code == 1
    assert verdicts(result) == ["specaudit: failed (exit 1): 1 of 6 cases diverged"]
    assert "a.jsonl, prompt q2: diverged" in words(result)
    assert "parts from the reference at token 2 of the output: expected 12, got 99" in words(result)


def test_a_truncated_output_is_called_truncated() -> None:
    result = replay(changed(4, output_ids=[24, 11, 12], text="The answer"), lines())
    assert result.exit_code == 1
    assert "stops too early at token 3 of the output: the reference has 7 tokens" in words(result)
    assert "truncation: only the first 3 of 7 tokens" in words(result)


def test_a_longer_output_is_no_match() -> None:
    result = replay(changed(0, output_ids=[*lines()[0]["output_ids"], 2, 2]), lines())
    assert result.exit_code == 1
    assert "goes on too long at token 7 of the output: the reference has stopped, the output has 9" in words(result)


def test_an_empty_output_is_an_output() -> None:
    result = replay(changed(0, output_ids=[], text=""), lines())
    assert result.exit_code == 1
    assert "empty: nothing to read" in words(result)


def test_swapped_outputs_are_named_with_each_other(snapshot: SnapshotAssertion) -> None:
    result = replay(swapped(1, 4), lines())
    assert result.exit_code == 1
    assert "permuted: the output is the reference's for prompt q4" in words(result)
    assert "permuted: the output is the reference's for prompt q1" in words(result)
    assert str(result) == snapshot


def test_an_output_given_twice_belongs_to_another_prompt() -> None:
    result = replay(changed(1, output_ids=lines()[4]["output_ids"]), lines())
    assert result.exit_code == 1
    assert "another prompt's: the output is the reference's for prompt q4" in words(result)
    assert "permuted" not in words(result)


MISSING = {
    "no line": (lines()[1:], lines(), "missing: the recording has no output of this id"),
    "no line in the reference": (lines(), lines()[1:], "missing: the reference has no output of this id"),
    "null": (changed(0, output_ids=None, text=None), lines(), "no output was recorded"),
    "no field": (without(lines()[:1], "output_ids", "text") + lines()[1:], lines(), "no output was recorded"),
    "an error": (changed(0, output_ids=None, text=None, error="HTTP 500"), lines(), "HTTP 500"),
    "an error beside an output": (changed(0, error="cut off after 3 s"), lines(), "cut off after 3 s"),
    "an error of the reference": (lines(), changed(0, error="HTTP 500"), "the reference has no output: HTTP 500"),
    "ids against text": (
        without(lines()[:1], "text") + lines()[1:], without(lines()[:1], "output_ids") + lines()[1:],
        "the outputs cannot be compared: one side has output_ids alone, the other text alone",
    ),
    "another prompt": (
        changed(0, prompt_ids=[1, 1, 50, 60]), lines(),
        "prompt-differs: the token ids of the prompts part at token 1",
    ),
    "another prompt as text": (
        changed(0, texts_only(lines()), prompt="Question q9?"), texts_only(lines()),
        "prompt-differs: the texts of the prompts part at character 10",
    ),
    "prompts in different forms": (
        [{**line, "prompt": "Question?"} for line in without(lines()[:1], "prompt_ids")] + lines()[1:], lines(),
        "the prompts cannot be compared: one side has prompt_ids alone, the other prompt alone",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISSING)
def test_what_cannot_be_compared_is_unmeasured(name: str) -> None:
    recording, reference, reason = MISSING[name]
    result = replay(recording, reference)
    assert result.exit_code == 3
    assert f"1 case: {reason}" in words(result)
    assert verdicts(result) == ["specaudit: no-evidence (exit 3): 1 of 6 cases unmeasured"]


def test_a_difference_outranks_what_is_missing() -> None:
    result = replay(changed(2, output_ids=[1, 2])[1:], lines())
    assert verdicts(result) == ["specaudit: failed (exit 1): 1 of 6 cases diverged, 1 unmeasured"]


def test_ids_count_where_there_are_both() -> None:
    assert replay(changed(0, text="rendered otherwise"), lines()).exit_code == 0
    result = replay(changed(0, output_ids=[20, 11, 12, 13, 30, 15, 2]), lines())
    assert result.exit_code == 1
    assert "the texts are equal; only the ids differ" in words(result)


def test_texts_are_compared_where_there_are_no_ids(snapshot: SnapshotAssertion) -> None:
    equal = replay(texts_only(lines()), texts_only(lines()))
    assert equal.exit_code == 0
    assert "compared as text in 6 of 6 cases, for want of token ids: ids may differ unseen" in words(equal)
    assert "6 compared as text" in verdicts(equal)[0]
    different = replay(changed(3, texts_only(lines()), text="The answer number 3"), texts_only(lines()))
    assert different.exit_code == 1
    assert str(different) == snapshot


def test_texts_of_one_side_are_enough_beside_ids_and_texts_of_the_other() -> None:
    with_prompts = [{**line, "prompt": f"Question {line['id']}?"} for line in lines()]
    assert replay(texts_only(lines()), with_prompts).exit_code == 0


def test_a_text_that_differs_in_white_space_differs() -> None:
    spaced = changed(0, texts_only(lines()), text=texts_only(lines())[0]["text"] + " ")
    assert replay(spaced, texts_only(lines())).exit_code == 1


def test_the_same_file_twice_is_said_to_teach_nothing() -> None:
    name = write("a.jsonl", lines())
    result = specaudit("replay", name, "--reference", f"records:{name}")
    assert result.exit_code == 0
    assert "both are the same file" in words(result)


def test_ids_may_be_numbers_and_blank_lines_and_marks_do_not_count() -> None:
    numbered = [{**line, "id": number} for number, line in enumerate(lines())]
    texts = [{**line, "id": str(number)} for number, line in enumerate(lines())]
    Path("a.jsonl").write_bytes(b"\xef\xbb\xbf\r\n" + b"\r\n\r\n".join(json.dumps(line).encode() for line in numbered))
    assert specaudit("replay", "a.jsonl", "--reference", write("b.jsonl", texts)).exit_code == 0


def test_models_are_named() -> None:
    result = replay([{**line, "model": "llama-7b"} for line in lines()], lines())
    assert "a.jsonl: 6 outputs, llama-7b" in words(result)


def test_json_is_the_document_of_a_run() -> None:
    result = replay(swapped(1, 4), lines(), "--json", "-")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert (report["verdict"], report["exit_code"]) == ("failed", 1)
    assert report["recordings"] == {"candidate": "a.jsonl", "reference": "b.jsonl"}
    (arm,) = report["arms"]
    assert (arm["decoder"], arm["batch_size"], arm["exact_match"]["count"]) == ("a.jsonl", None, 4)
    assert [one["permuted"] for one in arm["displaced"]] == [True, True]
    assert "specaudit: failed" in result.stderr
    replay(lines(), lines(), "--json", "report.json")
    assert json.loads(Path("report.json").read_text())["verdict"] == "equal-outputs"


TIMING = UnitTiming(decoder="eqspec", batch_size=4, draft_tokens=4, seed=0, unit=0, seconds=1.5, generated_tokens=4)


def test_samples_of_two_runs_are_compared_arm_by_arm() -> None:
    for name, output in (("before", (5, 6)), ("after", (5, 7))):
        cases = [
            made_case(prompt_id="a"),
            made_case(prompt_id="b", case_id="greedy/b4/b", decoder="greedy", draft_tokens=None, seed=None),
            made_case(prompt_id="c", case_id="bsp/b4/k4/s0/c", decoder="bsp", output=output),
        ]
        RunDirectory.create(Path(name)).append_unit(cases, TIMING)
    result = specaudit("replay", "after", "--reference", "before/samples.jsonl", "--json", "-")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert [(arm["decoder"], arm["batch_size"], arm["draft_tokens"]) for arm in report["arms"]] == [
        ("eqspec", 4, 4),
        ("greedy", 4, None),
        ("bsp", 4, 4),
    ]
    assert report["failing_case_ids"] == ["bsp/b4/k4/s0/c"]
    assert specaudit("replay", "after", "--reference", "after/samples.jsonl").exit_code == 0


def test_an_unmeasured_sample_stays_unmeasured() -> None:
    directory = RunDirectory.create(Path("run"))
    directory.append_unit([made_case(prompt_id="a"), made_case(prompt_id="b", output=None)], TIMING)
    result = specaudit("replay", "run", "--reference", "run")
    assert result.exit_code == 3
    assert "1 case: RuntimeError: boom" in words(result)


def test_no_model_library_is_imported() -> None:
    program = (
        "import sys\nfrom specaudit.cli.main import main\n"
        "sys.argv = ['specaudit', 'replay', 'a.jsonl', '--reference', 'b.jsonl']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 1\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    write("a.jsonl", changed(0, text="The answer", output_ids=[5]))
    write("b.jsonl", lines())
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120, capture_output=True)
