"""The run directory: everything a run leaves behind, written so that a killed run loses nothing finished.

manifest.json    the plan as passed, what was loaded, versions
samples.jsonl    one line a case, appended a unit at a time in one write
traces/          one file a violated case: what was seen at its origin
units.jsonl      one line a unit: time spent in the decoder
tokens.json      text of each generated token id, for diffs
report.json      verdict and summaries, written last
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, fields
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from specaudit.core.comparison import Divergence
from specaudit.core.errors import InputError, UsageError
from specaudit.core.evidence import CaseEvidence, read_evidence
from specaudit.core.records import CaseResult, CauseFinding, Coverage, Finding, SymptomFinding, UnitTiming
from specaudit.core.scores import Control, NoiseFloor
from specaudit.core.vocabulary import Cause, Check, Compared, Symptom, Sync, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

SCHEMA_VERSION = 1
"""Version of the files in a run directory; raised with every change that a reader must know of."""


LOCK = ".lock"
"""File that holds the number of the process that writes to the directory, while it does."""


class RunDirectory:
    """A run directory being written or read."""

    def __init__(self, path: Path) -> None:
        """Take `path` as a run directory; nothing is touched."""
        self.path = path

    @classmethod
    def create(cls, path: Path) -> RunDirectory:
        """Make an empty run directory at `path`; raise UsageError where that cannot be done."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            if any(file.stat().st_size or file.is_dir() for file in path.iterdir() if file.name != LOCK):
                raise UsageError(f"'{path}' is not empty", where="--out", way_out="name a folder that is new or empty.")
            directory = cls(path)
            directory.lock()
            (path / "samples.jsonl").touch()
        except OSError as error:
            raise UsageError(
                f"cannot write to '{path}': {error.strerror or error}",
                where="--out",
                way_out="name a folder that you may write to.",
            ) from error
        return directory

    def lock(self) -> None:
        """Claim the directory for this process; raise UsageError while another process that lives has it.

        Raises OSError where the folder cannot be written.
        """
        path = self.path / LOCK
        while True:
            try:
                with path.open("x", encoding="ascii") as file:
                    file.write(str(os.getpid()))
                return
            except FileExistsError:
                if _is_held(path):
                    raise UsageError(
                        f"another run is writing to '{self.path}'",
                        where="--out",
                        way_out="wait for it, or name another.",
                    ) from None
                path.unlink(missing_ok=True)

    def release(self) -> None:
        """Give the directory back."""
        with suppress(OSError):
            (self.path / LOCK).unlink(missing_ok=True)

    def discard_if_unused(self) -> None:
        """Remove the directory when nothing but empty files was written to it."""
        self.release()
        files = list(self.path.iterdir())
        if any(file.stat().st_size for file in files):
            return
        for file in files:
            file.unlink()
        with suppress(OSError):
            self.path.rmdir()

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest."""
        self._write("manifest.json", {"schema_version": SCHEMA_VERSION, **manifest})

    def append_unit(self, cases: Sequence[CaseResult], timing: UnitTiming) -> None:
        """Append the cases and the timing of one finished unit, each in one write."""
        self._append("samples.jsonl", [asdict(case) for case in cases])
        self._append("units.jsonl", [asdict(timing)])

    def append_control(self, control: Control) -> None:
        """Append what the control arms of one shape gave."""
        self._append("controls.jsonl", [asdict(control)])

    def read_controls(self) -> tuple[Control, ...]:
        """Return the controls written so far, the last of each shape; a torn last line and a missing file are dropped."""
        try:
            lines = (self.path / "controls.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
        except OSError:
            return ()
        where = str(self.path / "controls.jsonl")
        controls = [_read_control(line, where=f"{where}:{number}") for number, line in enumerate(lines, 1)]
        return tuple({(one.batch_size, one.draft_tokens): one for one in controls}.values())

    def write_evidence(self, evidence: CaseEvidence) -> None:
        """Write what was seen of one violated case."""
        path = self._evidence_path(evidence.case_id)
        path.parent.mkdir(exist_ok=True)
        torn = path.with_name(path.name + ".part")
        text = json.dumps({"schema_version": SCHEMA_VERSION, **asdict(evidence)}, ensure_ascii=False)
        torn.write_text(text + "\n", encoding="utf-8", errors="replace")
        torn.replace(path)

    def read_evidence(self, case_id: str) -> CaseEvidence | None:
        """Return what was seen of a violated case, or None where nothing was kept.

        Raises InputError for a file that is no evidence, or that of another case.
        """
        path = self._evidence_path(case_id)
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            del document["schema_version"]
            evidence = read_evidence(document)
        except OSError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"not the evidence of a case: {type(error).__name__}: {error}",
                where=str(path),
                way_out="run the case again; the file was edited.",
            ) from error
        if evidence.case_id != case_id:
            raise InputError(
                f"the evidence of another case, '{evidence.case_id}'",
                where=str(path),
                way_out="run the case again; the file was edited.",
            )
        return evidence

    def _evidence_path(self, case_id: str) -> Path:
        """Return the file of a case: its identifier as far as any file system takes it, and its digest."""
        plain = "".join(one if one.isascii() and one.isalnum() else "-" for one in case_id).strip("-")
        return self.path / "traces" / f"{plain[-60:]}-{sha256(case_id.encode(errors='replace')).hexdigest()[:8]}.json"

    def write_token_texts(self, token_texts: Mapping[int, str]) -> None:
        """Write the texts of token ids."""
        self._write("tokens.json", {str(token): text for token, text in token_texts.items()})

    def read_token_texts(self) -> dict[int, str]:
        """Return the texts of token ids; none where the run was interrupted or the file cannot be read."""
        try:
            document = json.loads((self.path / "tokens.json").read_text(encoding="utf-8"))
            return {int(token): str(text) for token, text in document.items()}
        except (OSError, ValueError, AttributeError):
            return {}

    def write_report(self, report: Mapping[str, Any]) -> None:
        """Write the report."""
        self._write("report.json", report)

    def read_cases(self) -> tuple[CaseResult, ...]:
        """Return the cases written so far; a torn last line is dropped.

        Raises InputError for a directory without samples and for a line that is not a case.
        """
        path = self.path / "samples.jsonl"
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
        except OSError as error:
            raise InputError(
                f"'{self.path}' is not a run directory", where=str(path), way_out="name a folder that a run wrote."
            ) from error
        whole = lines[:-1]  # what follows the last line break is empty or torn
        return tuple(_read_case(line, where=f"{path}:{number}") for number, line in enumerate(whole, start=1))

    def read_timings(self) -> tuple[UnitTiming, ...]:
        """Return the timings written so far; a torn last line is dropped, and so is a missing file."""
        try:
            lines = (self.path / "units.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
        except OSError:
            return ()
        return tuple(
            _read_timing(line, where=f"{self.path / 'units.jsonl'}:{number}") for number, line in enumerate(lines, 1)
        )

    def keep_only(self, units: Sequence[tuple[Sequence[CaseResult], UnitTiming | None]]) -> None:
        """Rewrite samples and timings to these units alone: what a killed process left half done goes."""
        self._rewrite("samples.jsonl", [asdict(case) for cases, _ in units for case in cases])
        self._rewrite("units.jsonl", [asdict(timing) for _, timing in units if timing is not None])

    def _rewrite(self, name: str, documents: Iterable[Mapping[str, Any]]) -> None:
        path = self.path / name
        torn = path.with_name(name + ".part")
        torn.unlink(missing_ok=True)
        torn.touch()
        self._append(torn.name, documents)
        torn.replace(path)

    def _write(self, name: str, document: Mapping[str, Any]) -> None:
        """Write a file in one rename: a reader sees the old one or the new one."""
        path = self.path / name
        torn = path.with_name(name + ".part")
        torn.write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        torn.replace(path)

    def _append(self, name: str, documents: Iterable[Mapping[str, Any]]) -> None:
        text = "".join(json.dumps(document, ensure_ascii=False) + "\n" for document in documents)
        with (self.path / name).open("ab", buffering=0) as file:
            file.write(text.encode("utf-8", errors="replace"))
            os.fsync(file.fileno())


def _is_held(lock: Path) -> bool:
    """Return whether the process that a lock names is another one and lives."""
    try:
        holder = int(lock.read_text(encoding="ascii"))
        os.kill(holder, 0)
    except (OSError, ValueError) as error:
        return isinstance(error, PermissionError)
    return holder != os.getpid()


def default_path(parent: Path, *, name: str, started: datetime) -> Path:
    """Return a new path `parent/<time>-<name>`, numbered where that exists already."""
    plain = "".join(character if character.isalnum() else "-" for character in name).strip("-") or "run"
    base = parent / f"{started:%Y%m%d-%H%M%S}-{plain[-40:]}"
    path, number = base, 2
    while path.exists():
        path, number = base.with_name(f"{base.name}-{number}"), number + 1
    return path


def _read_timing(line: str, *, where: str) -> UnitTiming:
    try:
        return UnitTiming(**json.loads(line))
    except (ValueError, TypeError) as error:
        raise InputError(
            f"not a timing: {type(error).__name__}: {error}", where=where, way_out="run again; the file was edited."
        ) from error


def _read_control(line: str, *, where: str) -> Control:
    try:
        document = json.loads(line)
        floor = document["floor"]
        return Control(**{**document, "floor": None if floor is None else NoiseFloor(**floor)})
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"not a control: {type(error).__name__}: {error}", where=where, way_out="run again; the file was edited."
        ) from error


def _read_case(line: str, *, where: str) -> CaseResult:
    try:
        document = json.loads(line)
        values = {field.name: document[field.name] for field in fields(CaseResult)}
        divergence = values["first_divergence"]
        values |= {
            "prompt_ids": tuple(values["prompt_ids"]),
            "reference_ids": tuple(values["reference_ids"]),
            "output_ids": None if values["output_ids"] is None else tuple(values["output_ids"]),
            "compared": Compared(values["compared"]),
            "verdict": Verdict(values["verdict"]),
            "sync": Sync(values["sync"]),
            "coverage": None if values.get("coverage") is None else Coverage(**values["coverage"]),
            "causes": tuple(
                CauseFinding(**{**found, "cause": Cause(found["cause"])}) for found in values.get("causes", ())
            ),
            "findings": tuple(
                Finding(**{**finding, "check": Check(finding["check"])}) for finding in values["findings"]
            ),
            "first_divergence": None if divergence is None else Divergence(**divergence),
            "symptoms": tuple(
                SymptomFinding(**{**found, "symptom": Symptom(found["symptom"])}) for found in values["symptoms"]
            ),
        }
        return CaseResult(**values)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"not a case: {type(error).__name__}: {error}", where=where, way_out="run again; the file was edited."
        ) from error
