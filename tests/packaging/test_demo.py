"""`make demo` and `make help`: the check of the demo's outcome can fail, and every target is listed."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
SCRIPT = ROOT / "scripts" / "check_demo.py"


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def report(**verdicts: str) -> dict[str, Any]:
    expected = {"greedy-batch": "lossless", "eqspec": "lossless", "bsp": "failed", "dsd": "failed"} | verdicts
    seen = {"RECT": 16, "POS": 16}
    return {
        "arms": [
            {"decoder": decoder, "batch_size": batch_size, "verdict": verdict, "violated_checks": seen}
            for decoder, verdict in expected.items()
            for batch_size in (1, 4, 8)
            if verdict
        ]
    }


def check(folder: Path, content: str, exit_code: int) -> subprocess.CompletedProcess[str]:
    path = folder / "demo.json"
    path.write_text(content, encoding="utf-8")
    program = [sys.executable, str(SCRIPT), str(path), "--exit-code", str(exit_code)]
    return subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)


def test_the_baselines_caught_and_the_others_lossless_is_a_success(tmp_path: Path) -> None:
    result = check(tmp_path, json.dumps(report()), 1)
    assert result.returncode == 0
    assert result.stderr == ""
    assert "bsp and dsd fail: they have" in result.stdout


WRONG = {
    "bsp not caught": (report(bsp="lossless"), 0),
    "a correct decoder failed": (report(eqspec="failed"), 1),
    "a decoder not observed": (report(**{"greedy-batch": "equal-outputs"}), 1),
    "a decoder missing": (report(eqspec=""), 1),
    "another exit code": (report(), 3),
}


@pytest.mark.parametrize("what", WRONG)
def test_anything_else_is_not(what: str, tmp_path: Path) -> None:
    document, exit_code = WRONG[what]
    result = check(tmp_path, json.dumps(document), exit_code)
    assert result.returncode == 1
    assert result.stderr.startswith("demo: not as expected: ")


def test_no_report_is_not(tmp_path: Path) -> None:
    result = check(tmp_path, "", 2)
    assert result.returncode == 1
    assert result.stderr.startswith("demo: no report (exit code 2)")


def test_the_expected_decoders_are_those_of_the_demo() -> None:
    (options,) = re.findall(r"^DEMO := (.*)$", MAKEFILE, flags=re.MULTILINE)
    (decoders,) = re.findall(r"--decoder (\S+)", options)
    assert decoders.split(",") == list(load(SCRIPT).EXPECTED)


def test_help_lists_every_target() -> None:
    targets = re.findall(r"^([a-z0-9-]+):", MAKEFILE, flags=re.MULTILINE)
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    listed = [line.split()[0] for line in shown.splitlines() if not line.startswith("make")]
    assert sorted(listed) == sorted(target for target in targets if not target.startswith("."))
    phony = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.MULTILINE)
    assert sorted(" ".join(phony).split()) == sorted(listed)


def test_the_readme_gets_the_report_of_its_run() -> None:
    script = load(ROOT / "scripts" / "refresh_readme.py")
    document = f"before\n\n{script.START}\n\nold\n\n{script.END}\n\nafter\n"
    written = script.with_report(document, ["specaudit", "run"], "\nline  \nrun directory: runs/20260102-030405-x\n")
    assert written == (
        f"before\n\n{script.START}\n\n```text\n$ specaudit run\nline\nrun directory: runs/<time>-x\n```\n\n"
        f"{script.END}\n\nafter\n"
    )
    with pytest.raises(ValueError, match="has no"):
        script.with_report("nothing here", ["specaudit"], "")
