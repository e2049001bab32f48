"""One run seen from the command line: events in; progress, run directory, report and exit code out."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from specaudit.core.errors import SpecauditError, UsageError
from specaudit.core.events import Event, RunFinished, RunStarted, UnitFinished
from specaudit.core.gate import EXIT_INTERRUPTED, decide
from specaudit.core.run_directory import RunDirectory
from specaudit.core.summary import RunModels, report_document, summarise
from specaudit.provenance import provenance
from specaudit.report.progress import progress_display
from specaudit.report.terminal import print_report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specaudit.core.records import AuditPlan, CaseResult, UnitTiming


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Where a run's results go."""

    folder: Path
    """Run directory, new or empty."""

    json: str | None
    """File for the report as JSON, `-` for standard output, or None."""

    details: int
    """Most failures shown in full, at least 0."""

    quiet: bool
    """Whether progress is left out."""


def run_session(plan: AuditPlan, output: Output) -> int:
    """Carry out `plan` and return the exit code."""
    from specaudit.runner import run_audit

    _check_json_file(output.json)
    directory = RunDirectory.create(output.folder)
    messages = Console(stderr=True)
    console = messages if output.json == "-" else Console()
    session = _Session(plan, directory)
    interrupted = False
    with progress_display(messages, quiet=output.quiet) as progress:
        try:
            for event in run_audit(plan):
                session.take(event)
                progress.show(event)
        except KeyboardInterrupt:
            interrupted = True
        except SpecauditError:
            directory.discard_if_unused()
            raise
    return session.finish(console, output, interrupted=interrupted)


class _Session:
    """Collects what the events carry, and writes it down as it comes."""

    def __init__(self, plan: AuditPlan, directory: RunDirectory) -> None:
        self.plan = plan
        self.directory = directory
        self.started: RunStarted | None = None
        self.cases: list[CaseResult] = []
        self.timings: list[UnitTiming] = []
        self.token_texts: Mapping[int, str] = {}

    def take(self, event: Event) -> None:
        """Note one event."""
        match event:
            case RunStarted():
                self.started = event
                self.directory.write_manifest(_manifest(event))
            case UnitFinished():
                self.cases += event.results
                self.timings.append(event.timing)
                self.directory.append_unit(event.results, event.timing)
            case RunFinished():
                self.token_texts = event.token_texts
                self.directory.write_token_texts(event.token_texts)
            case _:
                pass

    def finish(self, console: Console, output: Output, *, interrupted: bool) -> int:
        """Judge what was done, print and write the report, and return the exit code."""
        if self.started is None:
            self.directory.discard_if_unused()
            console.print("specaudit: interrupted (exit 130): before anything was decoded")
            return EXIT_INTERRUPTED
        planned = self.started.planned_cases
        decision = decide(self.cases, planned=planned, interrupted=interrupted)
        summaries = summarise(self.cases, self.timings)
        models = RunModels(target=self.started.target, draft=self.started.draft)
        report = report_document(summaries, self.cases, decision, planned_cases=planned, models=models)
        self.directory.write_report(report)
        print_report(
            console,
            self.plan,
            models,
            summaries,
            self.cases,
            decision,
            details=output.details,
            run_directory=str(self.directory.path),
            token_texts=self.token_texts or None,
        )
        if output.json is not None:
            _write_json(report, output.json)
        return decision.exit_code


def _manifest(started: RunStarted) -> dict[str, Any]:
    document = asdict(started)
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": sys.argv[1:],
        "plan": document.pop("plan"),
        "effective": document,
        **provenance(),
    }


def _check_json_file(name: str | None) -> None:
    """Raise UsageError where the report could not be written, before the work starts."""
    if name is None or name == "-":
        return
    try:
        with Path(name).open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise UsageError(
            f"cannot write to '{name}': {error.strerror or error}",
            where="--json",
            way_out="name a file that you may write to, or - for standard output.",
        ) from error


def _write_json(report: Mapping[str, Any], name: str) -> None:
    text = json.dumps(report, ensure_ascii=False, indent=2) + "\n"
    if name == "-":
        sys.stdout.write(text)
    else:
        Path(name).write_text(text, encoding="utf-8")
