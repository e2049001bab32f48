"""What a run directory holds when it is opened again: the plan, and the units that are finished."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from specaudit.core.errors import InputError
from specaudit.core.records import UNIT_BATCHES, Arm, AuditPlan, CaseResult, UnitTiming
from specaudit.core.run_directory import SCHEMA_VERSION, RunDirectory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


COUNTED = ("batch_sizes", "draft_tokens", "max_new_tokens", "threads")
"""Fields of a plan whose numbers are at least 1."""

LISTED = ("decoders", "seeds")
"""Fields of a plan that hold something, besides those."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredUnit:
    """A finished unit of an earlier process."""

    arm: Arm
    """The combination under audit."""

    unit: int
    """Unit of the arm, counted from 0."""

    cases: tuple[CaseResult, ...]
    """All its cases, in order."""

    timing: UnitTiming | None
    """Time that it took, or None where the process ended before writing it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run directory opened again."""

    directory: RunDirectory
    """Where it lies."""

    manifest: Mapping[str, Any]
    """The manifest as written."""

    plan: AuditPlan
    """The plan of the run."""

    units: tuple[StoredUnit, ...]
    """Its finished units, in the order in which they ran."""

    @property
    def run_id(self) -> str:
        """Return the identifier that the run was given."""
        return str(self.manifest["run_id"])


def open_run(directory: RunDirectory) -> StoredRun:
    """Return what a run directory holds.

    A unit counts as finished when every one of its planned cases is there; the cases of others, and a torn last line,
    are left out. Raises InputError for a folder that no run wrote or that a newer version wrote.
    """
    manifest = _read_manifest(directory)
    plan = _read_plan(manifest, where=str(directory.path / "manifest.json"))
    prompt_ids = list(manifest["effective"]["prompt_ids"])
    by_unit: dict[tuple[Arm, int], list[CaseResult]] = {}
    for case in directory.read_cases():
        by_unit.setdefault((arm_of(case), case.unit), []).append(case)
    timings = {(arm_of(timing), timing.unit): timing for timing in directory.read_timings()}
    units = [
        StoredUnit(arm=arm, unit=unit, cases=tuple(cases), timing=timings.get((arm, unit)))
        for (arm, unit), cases in by_unit.items()
        if [case.prompt_id for case in cases] == planned_prompts(prompt_ids, arm, unit)
    ]
    return StoredRun(directory=directory, manifest=manifest, plan=plan, units=tuple(units))


def planned_prompts(prompt_ids: Sequence[str], arm: Arm, unit: int) -> list[str]:
    """Return the prompts of one unit of an arm, in order."""
    size = UNIT_BATCHES * arm.batch_size
    return list(prompt_ids[unit * size : (unit + 1) * size])


def arm_of(record: CaseResult | UnitTiming) -> Arm:
    """Return the arm that a case or timing belongs to."""
    return Arm(**{field.name: getattr(record, field.name) for field in fields(Arm)})


def _read_manifest(directory: RunDirectory) -> dict[str, Any]:
    path = directory.path / "manifest.json"
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        version = manifest["schema_version"]
        if not _fits(version, int):
            raise TypeError(f"'schema_version' is {json.dumps(version)[:60]}")
        if version <= SCHEMA_VERSION:
            _check_types(manifest)
    except OSError as error:
        raise InputError(
            f"'{directory.path}' is not a run directory", where=str(path), way_out="name a folder that a run wrote."
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"not a manifest: {type(error).__name__}: {error}", where=str(path), way_out="run again from the start."
        ) from error
    if version > SCHEMA_VERSION:
        raise InputError(
            f"written by specaudit {manifest.get('specaudit', 'of a later version')} (schema {version}), "
            f"this one reads up to schema {SCHEMA_VERSION}",
            where=str(path),
            way_out=f"pip install 'specaudit>={manifest.get('specaudit', '')}'.",
        )
    return manifest  # type: ignore[no-any-return]


def _read_plan(manifest: Mapping[str, Any], *, where: str) -> AuditPlan:
    document = manifest["plan"]
    types = get_type_hints(AuditPlan)
    names = set(types)
    if set(document) != names:
        odd = ", ".join(sorted(set(document) ^ names))
        raise InputError(
            f"the plan does not fit this version ({odd})", where=where, way_out="run again from the start."
        )
    for name, value in document.items():
        if not _fits(value, types[name]) or not _is_usable(name, value):
            raise InputError(
                f"'{name}' of the plan cannot be {json.dumps(value)[:60]}",
                where=where,
                way_out="run again from the start.",
            )
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in document.items()
    }
    return AuditPlan(**values)


def _check_types(manifest: Mapping[str, Any]) -> None:
    """Raise KeyError or TypeError for a manifest without what is read of it, or with something else in its place."""
    effective = manifest["effective"]
    expected = (
        ("run_id", manifest["run_id"], str),
        ("plan", manifest["plan"], dict),
        ("effective", effective, dict),
        ("libraries", manifest["libraries"], dict),
        ("prompt_ids", effective["prompt_ids"], list[str]),
    )
    for name, value, hint in expected:
        if not _fits(value, hint):
            raise TypeError(f"'{name}' is {json.dumps(value)[:60]}")


def _is_usable(name: str, value: Any) -> bool:
    """Return whether a field of the right type holds what the command line would take."""
    if value is None or name not in {*COUNTED, *LISTED}:
        return True
    values = value if isinstance(value, list) else [value]
    return values != [] and (name not in COUNTED or min(values) >= 1)


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value read from JSON is of an annotated type, a tuple being an array in JSON."""
    if isinstance(hint, UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if get_origin(hint) in {tuple, list}:
        return isinstance(value, list) and all(_fits(one, get_args(hint)[0]) for one in value)
    if hint is float:
        hint = int | float
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))
