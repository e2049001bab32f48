"""`specaudit replay`: compare what two engines answered."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from specaudit.core.records import CaseResult
    from specaudit.engines.recordings import Recording

PREFIX = "records:"
"""How other commands name a recording; it may be left out here."""


def replay(
    recording: Annotated[
        str, typer.Argument(help="Outputs under audit: a .jsonl file with one a line, or a run directory.")
    ],
    reference: Annotated[str, typer.Option(help="Outputs taken for right, in the same form.")],
    json: Annotated[
        str | None, typer.Option(help="Write the report as JSON to this file; - for standard output.")
    ] = None,
    details: Annotated[int, typer.Option(help="Failures shown in full.")] = 3,
) -> None:
    """Compare recorded outputs of any engine with a reference's, prompt by prompt, without a model.

    A line is {"id": "q1", "prompt_ids": [1, 5], "output_ids": [7, 2]}; "prompt" and "text" may stand for the ids.
    Outputs are paired by id. Exit code: 0 equal, 1 a difference, 2 bad input, 3 something was not compared.
    """
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
    raise typer.Exit(decision.exit_code)


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
