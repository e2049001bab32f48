"""A decoder in a file outside the package: right, then broken in one line at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from transformers.models.llama import modeling_llama

from tests.cli.command import Result, specaudit

SOURCE = (Path(__file__).parent / "decoders" / "rollback.py").read_text()
POSITIONS = "position_ids=positions, past_key_values"
EOS_IN_OUTPUT = "any(token in eos_token_ids for token in output)"


def audit(folder: Path, source: str, *options: str) -> tuple[Result, list[dict]]:
    """Audit `source` as a file of the user's; return the command's result and the cases."""
    (folder / "theirs").mkdir()
    (folder / "theirs" / "rollback.py").write_text(source)
    result = specaudit(
        "run", "--decoder", "theirs/rollback.py:decode", "--batch-size", "4", "--max-new-tokens", "24",
        "--out", "run", *options,
    )  # fmt: skip
    return result, [json.loads(line) for line in (folder / "run" / "samples.jsonl").read_text().splitlines()]


def broken(line: str, replacement: str) -> str:
    """Return the decoder with one line changed."""
    assert SOURCE.count(line) == 1
    return SOURCE.replace(line, replacement)


def test_right(in_folder: Path) -> None:
    result, cases = audit(in_folder, SOURCE)
    assert result.exit_code == 0
    assert len(cases) == 24
    assert {case["verdict"] for case in cases} == {"identical"}
    assert {case["sync"] for case in cases} == {"certified"}
    assert result.stdout.splitlines()[-1].startswith("specaudit: lossless (exit 0)")


def test_without_position_ids(in_folder: Path) -> None:
    result, cases = audit(in_folder, broken(POSITIONS, "past_key_values"))
    assert result.exit_code == 1
    by_id = {case["prompt_id"]: case for case in cases}
    longest = {max(batch, key=lambda case: len(case["prompt_ids"]))["prompt_id"] for batch in batches(cases)}
    for prompt_id, case in by_id.items():
        if prompt_id in longest:  # no padding: the positions filled in are right
            assert case["sync"] == "certified"
            continue
        (finding,) = case["findings"]
        assert case["sync"] == "violated"
        assert finding["check"] == "POS"
        assert (finding["step"], finding["stream_index"]) == (0, 0)
        assert finding["expected"] == 0
        assert finding["actual"] == max(len(other["prompt_ids"]) for other in mates(case, cases)) - len(
            case["prompt_ids"]
        )
    assert "POS at step 0, row" in result.stdout
    assert "cause positions-shared-across-rows at step 0, row" in result.stdout


def test_equal_outputs_over_a_wrong_state(in_folder: Path) -> None:
    """Rotary positions are relative: an offset of all of them changes no output, and is a fault on other models."""
    result, cases = audit(in_folder, broken(POSITIONS, "position_ids=positions + 3, past_key_values"))
    assert result.exit_code == 1
    assert {(case["verdict"], case["sync"]) for case in cases} == {("identical", "violated")}
    assert {(case["causes"][0]["cause"], case["causes"][0]["step"]) for case in cases} == {("position-offset", 0)}
    assert "exact match cannot see this" in " ".join(result.stdout.split())


OUTPUT_FAULTS = {
    "permuted": ("    return outputs\n", "    return outputs[1:] + outputs[:1]\n"),
    "missed-eos": ("or any(token in eos_token_ids for token in output)", "or False"),
    "over-budget": ("len(output) >= max_new_tokens or", "len(output) > max_new_tokens or"),
    "early-stop": (
        "    return outputs\n",
        "    return [output[:-2] if len(output) == 24 else output for output in outputs]\n",
    ),
    "tail-after-eos": (
        "    return outputs\n",
        "    return [out + [7, 8] if out[-1] in eos_token_ids else out for out in outputs]\n",
    ),
    "pad-leak": (
        "    return outputs\n",
        "    return [output[:3] + [pad_token_id] + output[4:] for output in outputs]\n",
    ),
    "bonus-wrong": ("new = predictions[:, : kept + 1]", "new = predictions[:, : kept + 1].roll(1, 0)"),
}


@pytest.mark.parametrize("cause", OUTPUT_FAULTS)
def test_faults_of_output_and_choice_are_named(cause: str, in_folder: Path) -> None:
    result, cases = audit(in_folder, broken(*OUTPUT_FAULTS[cause]))
    assert result.exit_code == 1
    failing = [case for case in cases if case["verdict"] != "identical"]
    assert failing
    named = [case["causes"][0]["cause"] for case in failing]
    assert named.count(cause) > len(failing) / 2, named


def test_eos_looked_for_in_the_prompt(in_folder: Path) -> None:
    result, cases = audit(in_folder, broken(EOS_IN_OUTPUT, "any(token in eos_token_ids for token in prompt + output)"))
    assert result.exit_code == 1
    (failing,) = [case for case in cases if case["verdict"] != "identical" and case["prompt_id"] == "eos-inside"]
    assert failing["output_ids"] == []
    assert failing["first_divergence"] == {"position": 0, "expected": failing["reference_ids"][0], "actual": None}
    assert "stops too early at token 0 of the output" in " ".join(result.stdout.split())
    eos = json.loads((in_folder / "run" / "manifest.json").read_text())["effective"]["target"]["eos_token_ids"]
    for case in cases:
        assert (case["verdict"] == "identical") == (not set(eos) & set(case["prompt_ids"]))


def batches(cases: list[dict]) -> list[list[dict]]:
    """Return the cases by decoder call."""
    calls = sorted({(case["unit"], case["call"]) for case in cases})
    return [[case for case in cases if (case["unit"], case["call"]) == call] for call in calls]


def mates(case: dict, cases: list[dict]) -> list[dict]:
    """Return the cases that were decoded together with `case`, itself included."""
    return next(batch for batch in batches(cases) if case in batch)


FAILING = {
    "raises": "    raise RuntimeError('no luck')\n",
    "too-few-outputs": "    return [[1] for _ in prompts[1:]]\n",
    "returns-nothing": "    return None\n",
    "returns-floats": "    return [[0.5] for _ in prompts]\n",
    "id-outside": "    return [[10**9] for _ in prompts]\n",
    "exits": "    raise SystemExit(0)\n",
    "raises-no-exception": (
        "    class Odd(BaseException):\n        def __str__(self):\n            raise ValueError\n    raise Odd\n"
    ),
    "leaves-a-hook": (
        "    target.lm_head.register_forward_hook(lambda module, arguments, output: output.roll(1, -1))\n"
        "    return [[1] for _ in prompts]\n"
    ),
    "changes-weights": ("    target.get_input_embeddings().weight.mul_(1.01)\n    return [[1] for _ in prompts]\n"),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_decoder_that_fails_is_unmeasured(name: str, in_folder: Path) -> None:
    header = (
        "def decode(target, draft, tokenizer, prompts, *, max_new_tokens, draft_tokens, eos_token_ids, pad_token_id):\n"
    )
    result, cases = audit(
        in_folder, header + FAILING[name], "--limit", "5", "--decoder", "theirs/rollback.py:decode,eqspec"
    )
    assert result.exit_code == 3
    assert "Traceback" not in result.stderr
    theirs = [case for case in cases if case["decoder"] != "eqspec"]
    assert {case["verdict"] for case in theirs} == {"unmeasured"}
    assert all(case["error"] for case in theirs)
    assert theirs[0]["error"] in " ".join(result.stdout.split())
    if name not in {"changes-weights", "leaves-a-hook"}:  # the run goes on, and what others give is measured
        assert {case["verdict"] for case in cases if case["decoder"] == "eqspec"} == {"identical"}


def test_what_a_decoder_leaves_behind_is_not_blamed_on_the_next(in_folder: Path) -> None:
    last = "    return outputs\n"
    hook = "    target.lm_head.register_forward_hook(lambda module, arguments, output: output.roll(1, -1))\n"
    result, cases = audit(
        in_folder, broken(last, hook + last), "--limit", "4", "--decoder", "theirs/rollback.py:decode,eqspec"
    )
    assert result.exit_code == 3
    assert {case["verdict"] for case in cases} == {"unmeasured"}
    errors = {case["decoder"]: case["error"] for case in cases}
    assert "left the target computing something else" in errors["theirs/rollback.py:decode"]
    assert "decoder 'theirs/rollback.py:decode' had left" in errors["eqspec"]


IMPORTS = {
    "exits": ("import sys\nsys.exit(0)\n", "failed: SystemExit: 0"),
    "patches": (
        "import transformers.models.llama.modeling_llama as llama\n"
        "right = llama.apply_rotary_pos_emb\n"
        "llama.apply_rotary_pos_emb = lambda q, k, cos, sin, *rest, **more: right(q * 1.1, k, cos, sin, *rest, **more)\n",
        "changes what the target computes",
    ),
}


@pytest.mark.parametrize("name", IMPORTS)
def test_importing_a_decoder_neither_ends_nor_changes_the_run(
    name: str, in_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modeling_llama, "apply_rotary_pos_emb", modeling_llama.apply_rotary_pos_emb)  # put back after
    source, message = IMPORTS[name]
    (in_folder / "theirs.py").write_text(SOURCE + source)
    result = specaudit("run", "--decoder", "theirs.py:decode", "--limit", "2")
    assert result.exit_code == 2
    assert message in result.stderr


def test_forwards_in_other_threads_are_unobserved_and_compared_all_the_same(in_folder: Path) -> None:
    threaded = (
        "import threading\n"
        "from specaudit.decoders.greedy import decode as greedy\n"
        "def decode(target, draft, tokenizer, prompts, **options):\n"
        "    outputs = [None] * len(prompts)\n"
        "    def one(place):\n"
        "        outputs[place] = greedy(target, None, tokenizer, [prompts[place]], **options)[0]\n"
        "    threads = [threading.Thread(target=one, args=(place,)) for place in range(len(prompts))]\n"
        "    for thread in threads:\n"
        "        thread.start()\n"
        "    for thread in threads:\n"
        "        thread.join()\n"
        "    return outputs\n"
    )
    result, cases = audit(in_folder, threaded, "--limit", "4")
    assert result.exit_code == 0, result.stdout
    assert {case["verdict"] for case in cases} == {"identical"}
    assert {case["sync"] for case in cases} == {"unobserved"}
    assert "other threads" in cases[0]["sync_reason"]


ADVISED = """
import warnings
import transformers
from specaudit.decoders.greedy import decode as greedy

def decode(target, draft, tokenizer, prompts, *, max_new_tokens, draft_tokens, eos_token_ids, pad_token_id):
    transformers.utils.logging.get_logger("transformers.generation").warning("set some attention mask")
    return greedy(target, draft, tokenizer, prompts, max_new_tokens=max_new_tokens, draft_tokens=draft_tokens,
                  eos_token_ids=eos_token_ids, pad_token_id=pad_token_id)
"""


@pytest.mark.parametrize("quiet", [True, False])
def test_quiet_holds_back_the_advice_of_libraries(in_folder: Path, quiet: bool) -> None:
    (in_folder / "mine.py").write_text(ADVISED)
    command = [sys.executable, "-m", "specaudit", "run", "--decoder", "mine.py:decode", "--limit", "1"]
    options = ["--batch-size", "1", "--max-new-tokens", "4", *(["-q"] if quiet else [])]
    result = subprocess.run([*command, *options], capture_output=True, text=True, check=False, timeout=240)
    assert result.returncode == 0, result.stderr
    assert ("set some attention mask" in result.stderr) is not quiet
    assert (result.stderr == "") is quiet
