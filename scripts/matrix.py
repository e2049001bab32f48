"""`make matrix`: the self-test, EQSPEC and the trace on several releases of transformers, into docs/results.md.

For each release an environment of its own runs `specaudit selftest` on every architecture with a random model, and
`specaudit run` on the bundled pair. On releases from 4.57 on all must pass. Older ones are shown as they are: what cannot
be observed there is named, and must not be called certified.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from results import append_block

ROOT = Path(__file__).resolve().parents[1]
RELEASES = ("4.51.3", "4.57.6", "5.0.0", "5.24.0")
SUPPORTED_FROM = (4, 57)
ARCHITECTURES = ("llama", "qwen3", "glm4", "gpt2", "opt", "gpt_neox", "mistral", "gemma3", "phi3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one architecture gave on one release."""

    passed: bool
    """Whether every fault was caught and named right, and every legal variant certified."""

    words: str
    """The same for people."""


def main() -> None:
    """Make the environments, run everything, append the block; exit 1 where a supported release fails."""
    parser = argparse.ArgumentParser(description="The self-test on several releases of transformers.")
    parser.add_argument("--releases", default=",".join(RELEASES), help="releases, comma-separated")
    parser.add_argument("--python", action="append", default=[], metavar="RELEASE=PATH",
                        help="an interpreter that has the release already (repeatable)")  # fmt: skip
    parser.add_argument("--mutants", type=int, default=10, help="mutants for each architecture")
    parser.add_argument("--dry-run", action="store_true", help="print the block and write nothing")
    options = parser.parse_args()
    given = dict(pair.split("=", 1) for pair in options.python)
    releases = options.releases.split(",")
    pythons = {release: given.get(release) or str(_environment(release)) for release in releases}
    rows = [f"| architecture | {' | '.join(releases)} |", "| --- |" + " --- |" * len(releases)]
    failed = []
    with ThreadPoolExecutor(max_workers=2) as workers:
        jobs = {
            (architecture, release): workers.submit(_selftest, pythons[release], architecture, options.mutants)
            for architecture in ARCHITECTURES
            for release in releases
        }
        runs = {release: workers.submit(_run, pythons[release]) for release in releases}
        for architecture in ARCHITECTURES:
            cells = {release: jobs[architecture, release].result() for release in releases}
            rows.append(f"| {architecture} | {' | '.join(cell.words for cell in cells.values())} |")
            failed += [f"{architecture} on {release}" for release, cell in cells.items() if not cell.passed]
            print(rows[-1], flush=True)
        cells = {release: runs[release].result() for release in releases}
    rows.append(f"| bundled llama, eqspec at batch 1, 4, 8 | {' | '.join(cell.words for cell in cells.values())} |")
    failed += [f"eqspec on {release}" for release, cell in cells.items() if not cell.passed]
    rows += ["", f"Faults caught and named right, legal variants certified, mutants caught of those that change logits;"
                 f" Python {sys.version_info.major}.{sys.version_info.minor}."]  # fmt: skip
    if options.dry_run:
        print("\n".join(rows))
    else:
        append_block("Releases of transformers", rows)
    broken = [one for one in failed if _is_supported(one.rpartition(" ")[2])]
    print(f"failed: {', '.join(broken)}" if broken else "every supported release passes")
    sys.exit(1 if broken else 0)


def _is_supported(release: str) -> bool:
    return tuple(map(int, release.split(".")[:2])) >= SUPPORTED_FROM


def _environment(release: str) -> Path:
    """Return the interpreter of an environment with a release of transformers, made at the first call."""
    folder = ROOT / "build" / f"matrix-{release}"
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        venv.create(folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
        torch = next(line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("torch=="))
        subprocess.run([*install, torch], check=True)  # noqa: S603 (our own command)
        packages = ["numpy", "jinja2", "typer", "rich", "platformdirs", "rouge-score", f"transformers=={release}"]
        subprocess.run([*install, *packages], check=True)  # noqa: S603 (our own command)
        (folder / "installed").touch()
    return python


def _call(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    command = [python, "-m", "specaudit", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 (our own)


def _selftest(python: str, architecture: str, mutants: int) -> Cell:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "selftest.json"
        result = _call(python, "selftest", "--architecture", architecture, "--mutants", str(mutants), "-q",
                       "--json", str(path))  # fmt: skip
        if result.returncode not in (0, 1):
            return Cell(passed=False, words=f"cannot run: {_error(result)}")
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return Cell(passed=result.returncode == 0, words=_words(found))


def _run(python: str) -> Cell:
    with tempfile.TemporaryDirectory() as folder:
        result = _call(python, "run", "--decoder", "greedy-batch,eqspec", "--batch-size", "1,4,8", "-q",
                       "--out", f"{folder}/run", "--max-new-tokens", "24")  # fmt: skip
    last = result.stdout.strip().splitlines()[-1:] or [_error(result)]
    return Cell(passed=result.returncode == 0, words=last[0].removeprefix("specaudit: "))


def _error(result: subprocess.CompletedProcess[str]) -> str:
    line = next((line for line in result.stderr.splitlines() if line.startswith("error:")), "no report")
    return line.replace("|", "/")[:90]


def _words(found: dict[str, Any]) -> str:
    """Say what the self-test of one architecture found, in a few words."""
    (subject,) = found["subjects"]
    tried = [cell for cell in subject["cells"] if cell["outcome"] in {"right", "misnamed", "missed", "false alarm"}]
    right = sum(cell["outcome"] == "right" for cell in tried)
    variants = [one for one in subject["variants"] if one["is_tried"]]
    certified = sum(one["is_certified"] for one in variants)
    harmful = [one for one in subject["mutants"] if one["changes_logits"]]
    caught = sum(one["fate"] == "caught" for one in harmful)
    if not certified:
        return f"not observed: 0/{len(variants)} variants certified"
    return f"{right}/{len(tried)} right, {certified}/{len(variants)} certified, {caught}/{len(harmful)} mutants"


if __name__ == "__main__":
    main()
