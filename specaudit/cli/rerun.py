"""Runs that start from a run directory: `--resume` finishes one, `--from` repeats it or one call of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from specaudit.cli.ownership import check_code_is_allowed
from specaudit.cli.stored_samples import check_samples
from specaudit.core.errors import UsageError, nearest
from specaudit.core.run_directory import RunDirectory
from specaudit.core.stored_run import StoredRun, arm_of, open_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from specaudit.core.records import Arm, AuditPlan

COMPOSITION = (
    "decoders",
    "batch_sizes",
    "draft_tokens",
    "seeds",
    "prompts",
    "prompt_field",
    "turn",
    "categories",
    "sample",
    "limit",
)
"""Fields of a plan that decide which arms there are, and which prompts a decoder call holds."""


def resumable(path: Path, given: Sequence[str], *, is_alone: bool, allow_code: bool) -> StoredRun:
    """Return the run in `path`, ready to be finished; raise UsageError when options would change its plan.

    Raises InputError for finished cases that cannot be right.
    """
    if given or not is_alone:
        what = ", ".join(given) if given else "--from or --out"
        message = f"--resume finishes a run as it was planned, without {what}"
        raise UsageError(message, where="--resume", way_out=f"specaudit run --from {path} runs it again with changes.")
    stored = open_run(RunDirectory(path))
    check_code_is_allowed(stored, allow_code=allow_code)
    check_samples(stored)
    return stored


def plan_again(
    path: Path, case_id: str | None, changes: Mapping[str, Any], *, allow_code: bool
) -> tuple[AuditPlan, tuple[Arm, int, int] | None]:
    """Return the plan of the run in `path` with `changes`, and the one call of `case_id` where that is given.

    Raises UsageError for a case that the run does not have, or changes that would compose its call differently.
    """
    stored = open_run(RunDirectory(path))
    check_code_is_allowed(stored, allow_code=allow_code)
    plan = replace(stored.plan, **changes)
    if case_id is None:
        return plan, None
    composing = [name for name in changes if name in COMPOSITION]
    if composing:
        raise UsageError(
            f"{', '.join(composing)} would put other prompts into the call of the case",
            where="--case",
            way_out="leave --case out, or those options.",
        )
    cases = {case.case_id: case for case in stored.directory.read_cases()}
    case = cases.get(case_id)
    if case is None:
        raise UsageError(f"the run has no case '{case_id}'", where="--case", way_out=nearest(case_id, cases))
    return plan, (arm_of(case), case.unit, case.call)
