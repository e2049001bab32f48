"""One run seen from the command line: events in; progress, run directory, report and exit code out."""

from __future__ import annotations

import json
import shlex
import sys
import time
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rich.console import Console

from specaudit.cli.json_file import check_json_file, write_json
from specaudit.cli.lost_output import surviving_lost_output
from specaudit.cli.ownership import claim_run
from specaudit.cli.signals import stopping_on_signals
from specaudit.core.errors import SpecauditError, UsageError
from specaudit.core.events import Event, FloorMeasured, RunFinished, RunStarted, UnitFinished
from specaudit.core.gate import EXIT_INTERRUPTED, decide
from specaudit.core.report_document import report_document
from specaudit.core.run_directory import RunDirectory
from specaudit.core.summary import RunModels, summarise
from specaudit.models.restraint import quiet_libraries
from specaudit.provenance import provenance
from specaudit.report.progress import progress_display
from specaudit.report.terminal import print_report
from specaudit.runner import Selection, run_audit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from specaudit.core.records import Arm, AuditPlan, CaseResult, UnitTiming
    from specaudit.core.scores import Control
    from specaudit.core.stored_run import StoredRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Where a run's results go."""

    folder: Path
    """Run directory, new or empty, or that of the run to be resumed."""

    json: str | None
    """File for the report as JSON, `-` for standard output, or None."""

    details: int
    """Most failures shown in full, at least 0."""

    quiet: bool
    """Whether progress is left out."""

    time_limit: float | None
    """Seconds after which no further unit is started, or None."""


def run_session(
    plan: AuditPlan,
    output: Output,
    *,
    resumed: StoredRun | None = None,
    only: tuple[Arm, int, int] | None = None,
) -> int:
    """Carry out `plan`, or what `resumed` left of it, or the one call `only`; return the exit code."""
    check_json_file(output.json)
    directory = RunDirectory.create(output.folder) if resumed is None else resumed.directory
    messages = Console(stderr=True)
    console = messages if output.json == "-" else Console()
    session = _Session(plan, directory, resumed)
    session.is_one_call = only is not None
    selection = Selection(done=session.done(), done_ids=session.generated_ids(), only=only)
    deadline = None if output.time_limit is None else time.monotonic() + output.time_limit
    interrupted = False
    if resumed is not None:
        directory.lock()
    with released(directory), stopping_on_signals():
        hush = quiet_libraries() if output.quiet else nullcontext()
        with hush, progress_display(messages, quiet=output.quiet) as progress:
            try:
                for event in run_audit(plan, selection=selection):
                    for shown in session.take(event):
                        progress.show(shown)
                    if deadline is not None and isinstance(event, UnitFinished) and time.monotonic() > deadline:
                        session.stopped_by = f"time limit of {output.time_limit:g} s reached"
                        break
            except KeyboardInterrupt:
                interrupted = True
            except SpecauditError:
                directory.discard_if_unused()
                raise
        return session.finish(console, output, interrupted=interrupted)


@contextmanager
def released(directory: RunDirectory) -> Iterator[None]:
    """Run the block, then give the run directory back; what crashes the block is told how to go on from there."""
    try:
        yield
    except (SpecauditError, BrokenPipeError):
        raise
    except Exception as error:
        directory.discard_if_unused()
        if (directory.path / "manifest.json").exists():
            path = shlex.quote(str(directory.path))
            error.add_note(f"what was finished is kept; to go on: specaudit run --resume {path}")
        raise
    finally:
        directory.release()


class _Session:
    """Collects what the events carry, and writes it down as it comes."""

    def __init__(self, plan: AuditPlan, directory: RunDirectory, resumed: StoredRun | None) -> None:
        self.plan = plan
        self.directory = directory
        self.resumed = resumed
        self.started: RunStarted | None = None
        self.stopped_by: str | None = None
        self.is_one_call = False
        self.token_texts: Mapping[int, str] = {}
        stored = () if resumed is None else resumed.units
        self.cases: list[CaseResult] = [case for unit in stored for case in unit.cases]
        earlier = () if resumed is None else resumed.directory.read_controls()
        self.controls: dict[tuple[int, int], Control] = {(one.batch_size, one.draft_tokens): one for one in earlier}
        self.timings: list[UnitTiming] = [unit.timing for unit in stored if unit.timing is not None]

    def done(self) -> frozenset[tuple[Arm, int]]:
        """Return the units that an earlier process finished."""
        return frozenset((unit.arm, unit.unit) for unit in self.resumed.units) if self.resumed else frozenset()

    def generated_ids(self) -> frozenset[int]:
        """Return the token ids that the finished units generated."""
        return frozenset(token for case in self.cases for token in case.output_ids or ())

    def take(self, event: Event) -> list[Event]:
        """Note one event; return what is to be shown, finished units of an earlier process included."""
        match event:
            case RunStarted():
                self.started = event
                if self.resumed is None:
                    self.directory.write_manifest(_manifest(event))
                    return [event]
                _check_same_run(self.resumed, event)
                self.directory.keep_only([(unit.cases, unit.timing) for unit in self.resumed.units])
            case UnitFinished():
                self.cases += event.results
                self.timings.append(event.timing)
                for evidence in event.evidence:
                    self.directory.write_evidence(evidence)
                self.directory.append_unit(event.results, event.timing)
            case FloorMeasured():
                self.controls[event.control.batch_size, event.control.draft_tokens] = event.control
                self.directory.append_control(event.control)
            case RunFinished():
                self.token_texts = event.token_texts
                self.directory.write_token_texts(event.token_texts)
            case _:
                pass
        return [event]

    def finish(self, console: Console, output: Output, *, interrupted: bool) -> int:
        """Judge what was done, print and write the report, and return the exit code."""
        if self.started is None:
            self.directory.discard_if_unused()
            console.print("specaudit: interrupted (exit 130): before anything was decoded")
            return EXIT_INTERRUPTED
        planned = self.started.planned_cases
        controls = tuple(self.controls.values())
        decision = decide(
            self.cases,
            planned=planned,
            interrupted=interrupted,
            stopped_by=self.stopped_by,
            controls=controls,
            requires_coverage=not self.is_one_call,
        )
        summaries = summarise(self.cases, self.timings, requires_coverage=not self.is_one_call)
        models = RunModels(target=self.started.target, draft=self.started.draft)
        left_out = self.started.left_out
        report = report_document(
            summaries,
            self.cases,
            decision,
            planned_cases=planned,
            models=models,
            left_out=left_out,
            notices=self.started.notices,
            controls=controls,
        )
        self.directory.write_report(report)
        if output.json is not None and output.json != "-":
            write_json(report, output.json)
        with surviving_lost_output():
            print_report(
                console,
                self.plan,
                models,
                summaries,
                self.cases,
                decision,
                details=output.details,
                run_directory=str(output.folder),
                token_texts=self.token_texts or None,
                left_out=left_out,
                notices=self.started.notices,
                controls=controls,
                planned_prompts=min(len(self.started.prompt_ids), planned),  # fewer where one call is run again
            )
            if output.json == "-":
                write_json(report, output.json)
        return decision.exit_code


def _manifest(started: RunStarted) -> dict[str, Any]:
    document = asdict(started)
    run_id = str(uuid4())
    claim_run(run_id)
    return {
        "run_id": run_id,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": sys.argv[1:],
        "plan": document.pop("plan"),
        "effective": document,
        **provenance(),
    }


def _check_same_run(resumed: StoredRun, started: RunStarted) -> None:
    """Raise UsageError where models, prompts or libraries are not those that the run began with."""
    now = json.loads(json.dumps(asdict(started)))
    then = resumed.manifest["effective"]
    differing = [
        what
        for what, key in (
            ("target", "target"),
            ("draft", "draft"),
            ("prompts", "prompt_set_digest"),
            ("a decoder's code", "decoder_digests"),
        )
        if now[key] != then.get(key)
    ]
    if provenance()["libraries"] != resumed.manifest["libraries"]:
        differing.append("library versions")
    if differing:
        raise UsageError(
            f"{' and '.join(differing)} changed since the run began",
            where="--resume",
            way_out=f"put them back, or start again: specaudit run --from {resumed.directory.path}",
        )
