"""`specaudit explain`: the story of one case of a finished run, from what the run kept, without a model."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 (typer reads the annotation)
from typing import TYPE_CHECKING, Annotated

import typer

from specaudit.core.errors import UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.core.records import CaseResult

MOST_CANDIDATES = 8
"""Most cases named where a part of an identifier fits several."""


def explain(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.")],
    case: Annotated[str, typer.Argument(metavar="CASE", help="Case, or a part of its name that fits no other.")],
    json: Annotated[
        str | None, typer.Option(help="Write the evidence as JSON to this file; - for standard output.")
    ] = None,
) -> None:
    """Tell the story of one case of a finished run: what differs, which step and row began it, what it saw, and why.

    Exit code: 0 told, also where the case did not fail; 2 no such run or case.
    """
    from dataclasses import asdict

    from rich.console import Console

    from specaudit.cli.json_file import check_json_file, write_json
    from specaudit.cli.lost_output import surviving_lost_output
    from specaudit.core.run_directory import SCHEMA_VERSION, RunDirectory
    from specaudit.report.explanation import print_explanation, rerun_command

    check_json_file(json)
    directory = RunDirectory(run)
    cases = directory.read_cases()
    chosen = named_case(cases, case)
    evidence = directory.read_evidence(chosen.case_id)
    with surviving_lost_output():
        print_explanation(
            Console(stderr=json == "-"),
            chosen,
            cases,
            evidence,
            run_directory=str(run),
            token_texts=directory.read_token_texts(),
        )
        if json is not None:
            document = {
                "schema_version": SCHEMA_VERSION,
                "case": asdict(chosen),
                "evidence": None if evidence is None else asdict(evidence),
                "rerun": rerun_command(str(run), chosen.case_id),
            }
            write_json(document, json)


def named_case(cases: Sequence[CaseResult], name: str) -> CaseResult:
    """Return the case with this identifier, or the only one that has it as a part; raise UsageError for none or many."""
    by_id = {case.case_id: case for case in cases}
    if name in by_id:
        return by_id[name]
    fitting = [case_id for case_id in by_id if name in case_id]
    if len(fitting) == 1:
        return by_id[fitting[0]]
    if not fitting:
        raise UsageError(f"the run has no case '{name}'", where="CASE", way_out=nearest(name, by_id))
    shown = fitting[:MOST_CANDIDATES]
    more = f", ... ({len(fitting)} in all)" if len(fitting) > len(shown) else ""
    raise UsageError(
        f"'{name}' is a part of {len(fitting)} cases", where="CASE", way_out=f"one of: {', '.join(shown)}{more}"
    )
