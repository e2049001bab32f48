"""`specaudit replay`: compare what two engines answered, or judge what one answered by its target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specaudit.cli.lists import token_ids
from specaudit.cli.model_options import MODELS, AllowPickle, Attn, Device, Dtype, Revision, Threads, TrustRemoteCode
from specaudit.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specaudit.core.records import CaseResult
    from specaudit.engines.recordings import Recording

PREFIX = "records:"
"""How other commands name a recording; it may be left out here."""


def replay(
    recording: Annotated[
        str, typer.Argument(help="Outputs under audit: a .jsonl file with one a line, or a run directory.")
    ],
    reference: Annotated[
        str | None,
        typer.Option(
            help="Outputs taken for right, in the same form; with --target, outputs without speculation that show how "
            "far rounding goes."
        ),
    ] = None,
    json: Annotated[
        str | None, typer.Option(help="Write the report as JSON to this file; - for standard output.")
    ] = None,
    details: Annotated[int, typer.Option(help="Failures shown in full.")] = 3,
    target: Annotated[
        str | None,
        typer.Option(
            help="Judge every token by this model's own logits: bundled:FAMILY, a directory, a .gguf file or a Hub id.",
            rich_help_panel=MODELS,
        ),
    ] = None,
    oracle_dtype: Annotated[
        str | None,
        typer.Option(
            help="Type to judge in, float32 or float64; the weights stay those of --dtype. Default: --dtype.",
            rich_help_panel=MODELS,
        ),
    ] = None,
    eos_ids: Annotated[
        str | None, typer.Option(help="EOS ids, comma-separated, instead of the target's.", rich_help_panel=MODELS)
    ] = None,
    ignore_eos: Annotated[
        bool, typer.Option("--ignore-eos", help="The engine was told to go on after EOS.", rich_help_panel=MODELS)
    ] = False,
    dtype: Dtype = None,
    device: Device = None,
    attn: Attn = "sdpa",
    revision: Revision = None,
    trust_remote_code: TrustRemoteCode = False,
    allow_pickle: AllowPickle = False,
    threads: Threads = None,
) -> None:
    """Compare recorded outputs of any engine with a reference's, prompt by prompt, without a model.

    A line is {"id": "q1", "prompt_ids": [1, 5], "output_ids": [7, 2]}; "prompt" and "text" may stand for the ids.
    Outputs are paired by id. With --target, every token is judged by the target's own logits instead. Exit code: 0 equal,
    1 a difference, 2 bad input, 3 something was not compared, or is neither excused nor accused.
    """
    for_target = {
        "--oracle-dtype": oracle_dtype is not None,
        "--eos-ids": eos_ids is not None,
        "--ignore-eos": ignore_eos,
        "--dtype": dtype is not None,
        "--device": device is not None,
        "--attn": attn != "sdpa",
        "--revision": revision is not None,
        "--trust-remote-code": trust_remote_code,
        "--allow-pickle": allow_pickle,
        "--threads": threads is not None,
    }
    if details < 0:
        raise UsageError(f"{details} failures cannot be shown", where="--details", way_out="give 0 or more.")
    if target is None:
        _check_no_option_of_a_target(for_target)
        if reference is None:
            raise UsageError(
                "there is nothing to compare with",
                where="replay",
                way_out="give --reference FILE, or --target MODEL to judge by the model's own logits.",
            )
        raise typer.Exit(_compare(recording, reference, json, details))
    if eos_ids is not None and ignore_eos:
        raise UsageError("--eos-ids and --ignore-eos exclude each other", way_out="give one of them.")
    if threads is not None and threads < 1:
        raise UsageError(f"{threads} is not a number of threads", where="--threads", way_out="give 1 or more.")
    given_eos = None if eos_ids is None else frozenset(token_ids(eos_ids, option="--eos-ids"))

    from specaudit.cli.oracle import OracleOptions, judge_recording
    from specaudit.models.options import LoadOptions

    options = OracleOptions(
        recording=recording.removeprefix(PREFIX),
        reference=None if reference is None else reference.removeprefix(PREFIX),
        target=target,
        load=LoadOptions(
            dtype=dtype,
            device=device or "auto",
            attn=attn,
            revision=revision,
            trust_remote_code=trust_remote_code,
            allow_pickle=allow_pickle,
        ),
        oracle_dtype=oracle_dtype,
        eos_token_ids=frozenset() if ignore_eos else given_eos,
        threads=threads,
        json=json,
        details=details,
    )
    raise typer.Exit(judge_recording(options))


def _check_no_option_of_a_target(given: Mapping[str, bool]) -> None:
    idle = [option for option, is_given in given.items() if is_given]
    if idle:
        raise UsageError(
            f"{' and '.join(idle)} need a target", where="replay", way_out="name it with --target, or leave them out."
        )


def _compare(recording: str, reference: str, json: str | None, details: int) -> int:
    """Compare two recordings, print the report and return the exit code."""
    from rich.console import Console

    from specaudit.cli.json_file import check_json_file, write_json
    from specaudit.core.gate import decide
    from specaudit.core.report_document import report_document
    from specaudit.core.summary import summarise
    from specaudit.engines.pairing import compare_recordings
    from specaudit.engines.recordings import read_recording
    from specaudit.report.terminal import print_replay

    candidate, truth = (read_recording(Path(name.removeprefix(PREFIX))) for name in (recording, reference))
    cases = compare_recordings(candidate, truth)
    check_json_file(json)
    decision = decide(cases, planned=len(cases))
    summaries = summarise(cases, [])
    sides = _sides(candidate, truth, cases)
    print_replay(Console(stderr=json == "-"), sides, summaries, cases, decision, details=details)
    if json is not None:
        document = report_document(summaries, cases, decision, planned_cases=len(cases))
        write_json({**document, "recordings": {"candidate": candidate.name, "reference": truth.name}}, json)
    return decision.exit_code


def _sides(candidate: Recording, truth: Recording, cases: tuple[CaseResult, ...]) -> dict[str, str]:
    """Return what is said of the two recordings above the table, by label."""
    from specaudit.core.vocabulary import Compared, Verdict

    sides = {"recording": _side(candidate), "reference": _side(truth)}
    measured = [case for case in cases if case.verdict is not Verdict.UNMEASURED]
    as_text = sum(case.compared is Compared.TEXT for case in measured)
    if as_text:
        sides["compared"] = (
            f"as text in {as_text} of {len(measured)} cases, for want of token ids: ids may differ unseen"
        )
    if _is_same_file(candidate, truth):
        sides["note"] = "both are the same file, which always equals itself: nothing is learnt from it"
    return sides


def _side(recording: Recording) -> str:
    from specaudit.report.numbers import counted

    models = list(dict.fromkeys(output.model for output in recording.outputs.values() if output.model is not None))
    named = f", {' and '.join(models[:3])}" if models else ""
    return f"{recording.name}: {counted(len(recording.outputs), 'output')}{named}"


def _is_same_file(candidate: Recording, truth: Recording) -> bool:
    try:
        return Path(candidate.name).samefile(truth.name)
    except OSError:  # it was there a moment ago; not worth a failure
        return False
