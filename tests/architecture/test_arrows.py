"""Which part of specaudit may import which: the table below is the rule, and every import is held against it.

An import counts wherever it stands, in a function or under `TYPE_CHECKING` too: what a part knows is what it names.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.architecture.imports import PACKAGE, Import, loading_closure, module_files, part_of, read_imports

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Row:
    """What one part may import besides the standard library and itself."""

    parts: str = ""
    """Parts of specaudit, or `EVERYTHING`."""

    packages: str = ""
    """Packages of others."""


EVERYTHING = "*"

ALLOWED = {
    # what everybody imports names the entry for scripts, in a function
    # no arrow leaves these, or only to core
    "": Row("watching", "transformers"),
    "core": Row(),
    "cache_folder": Row(packages="platformdirs"),
    "bundled_files": Row("core"),
    "provenance": Row(),
    "report": Row("core", "rich"),
    "prompts": Row("core bundled_files"),
    # what knows a model, and nothing of decoding
    "models": Row("core bundled_files cache_folder", "torch transformers numpy gguf"),
    "batch": Row("core", "torch transformers"),
    "isolation": Row("", "torch transformers"),
    "canary": Row("", "torch transformers"),
    "outputs": Row("", "torch"),
    "threads": Row("models", "torch"),
    # what knows outputs alone: no model, no decoder
    "call_timeout": Row("core"),
    "output_comparison": Row("core"),
    "text": Row("core", "rouge_score"),
    "engines": Row("core text"),
    # what watches a model knows no decoder and no check; checks know what was watched and nothing else
    "trace": Row("core", "torch transformers numpy"),
    "checks": Row("core trace", "numpy"),
    "settings": Row("core trace", "transformers"),
    # the oracle knows a model, prompts and outputs: no decoder, no check, no report
    "oracle": Row("core batch trace", "torch transformers"),
    # decoders know no trace and no check
    "decoders": Row("core batch models", "torch transformers"),
    # faults are decoders broken in one place: they say what should be found, and know nothing that finds it
    "faults": Row("core batch decoders", "torch transformers"),
    "reference": Row("core cache_folder checks decoders models trace", "torch transformers"),
    "second_turns": Row("core models prompts reference"),
    "planning": Row("core decoders models"),
    "draft_supply": Row("core decoders models"),
    # from a call to the results of its cases
    "decoder_call": Row("trace"),
    "noise": Row("core checks decoders models oracle trace", "torch"),
    "case_judging": Row("core checks decoder_call models noise output_comparison reference text trace"),
    "watching": Row("core trace checks", "transformers"),
    # what brings them together; it neither reports nor knows the command line
    "runner": Row(
        "core prompts models decoders trace text isolation outputs settings reference"
        " second_turns planning draft_supply call_timeout threads canary case_judging decoder_call noise",
        "torch",
    ),
    # the self-test brings faults and what finds them together
    "selftest": Row("core faults decoders checks trace models prompts text", "torch"),
    "diagnosis": Row(),
    "doctor": Row(
        "core canary batch prompts models decoders diagnosis planning runner settings threads trace", "torch"
    ),
    "cli": Row(EVERYTHING, "typer rich"),
    "__main__": Row("cli"),
}
"""One row a part: a subpackage or a file directly under specaudit; `""` is `specaudit/__init__.py`."""

START_UP = ("typer",)
"""Packages of others that may be imported before a command is known, so that help answers at once."""

START_UP_PARTS = ("", "core", "cli")
"""Parts of specaudit that may be imported before a command is known."""

VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}

FILES = module_files(ROOT)
IMPORTS = read_imports(ROOT)


def broken_arrows(imports: Iterable[Import]) -> list[str]:
    """Return the imports that the table does not allow, and the parts that it does not know, for people."""
    return [f"{found}, which {reason}" for found in imports if (reason := _objection(found)) is not None]


def _objection(found: Import) -> str | None:
    row = ALLOWED.get(found.importer_part)
    if row is None:
        return f"has no row for '{found.importer_part}' in the table of tests/architecture/test_arrows.py"
    package = found.module.partition(".")[0]
    if package == PACKAGE:
        part = part_of(found.module)
        is_allowed = row.parts == EVERYTHING or part in {found.importer_part, "", *row.parts.split()}
        return None if is_allowed else f"'{found.importer_part or PACKAGE}' may not know"
    if package in sys.stdlib_module_names or package in row.packages.split():
        return None
    return f"'{found.importer_part or PACKAGE}' may not use"


def broken_start_up(imports: Iterable[Import], modules: Iterable[str]) -> list[str]:
    """Return what importing the command line imports too early, for people."""
    imports, modules = list(imports), list(modules)
    reached = loading_closure("specaudit.cli.main", imports, modules)
    return [
        str(found)
        for found in imports
        if found.importer in reached and found.is_loading and not _may_start_with(found.module)
    ]


def _may_start_with(module: str) -> bool:
    package = module.partition(".")[0]
    if package == PACKAGE:
        return part_of(module) in START_UP_PARTS
    return package in sys.stdlib_module_names or package in START_UP


def test_every_import_is_allowed() -> None:
    found = broken_arrows(found for found in IMPORTS if found.importer_part in ALLOWED)
    assert not found, "\n".join(found)


def test_every_part_has_a_row() -> None:
    """A new subpackage or file directly under specaudit needs a row in the table above: what may it know?"""
    assert set(ALLOWED) == {part_of(module) for module in FILES}


def test_start_up_imports_the_command_line_and_core_alone() -> None:
    assert "specaudit.cli.run" in loading_closure("specaudit.cli.main", IMPORTS, FILES)
    assert broken_start_up(IMPORTS, FILES) == []


def test_listing_decoders_imports_the_registry_alone() -> None:
    reached = loading_closure("specaudit.decoders.registry", IMPORTS, FILES)
    assert reached == {"specaudit", "specaudit.decoders", "specaudit.decoders.registry"}


def test_cache_classes_are_known_to_batch_and_trace_alone() -> None:
    knowing = {
        part_of(module)
        for module, path in FILES.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("transformers")
        if any(alias.name.endswith("Cache") for alias in node.names)
    }
    assert knowing == {"batch", "trace"}


def test_file_names_say_what_is_inside() -> None:
    vague = [module for module in FILES if set(module.rpartition(".")[2].split("_")) & VAGUE_NAMES]
    assert vague == []


@pytest.mark.parametrize("module", FILES)
def test_file_starts_with_a_docstring(module: str) -> None:
    tree = ast.parse(FILES[module].read_text(encoding="utf-8"))
    assert not tree.body or ast.get_docstring(tree), f"{FILES[module]} has no docstring"


# The checks above can fail: each of these sources breaks one of them.

FORBIDDEN = {
    "core knows torch": ("core/gate.py", "import torch\n"),
    "core knows another part": ("core/gate.py", "from specaudit.report import terminal\n"),
    "core knows another part by a relative import": ("core/gate.py", "from ..report.terminal import print_report\n"),
    "core knows another part by the package": ("core/gate.py", "from specaudit import cli\n"),
    "for type checkers only": ("checks/pos.py", "if TYPE_CHECKING:\n    from specaudit.decoders.rows import Row\n"),
    "in a function": ("runner.py", "def run():\n    import specaudit.report.terminal\n"),
    "in a method of a class in a branch": (
        "trace/recorder.py",
        "if True:\n    class A:\n        def b(self):\n            from specaudit.decoders import greedy\n",
    ),
    "the command line is known to nobody": ("decoders/eqspec.py", "from specaudit.cli.main import app\n"),
    "report uses numpy": ("report/terminal.py", "import numpy.linalg as linalg\n"),
    "a part without a row": ("extras/__init__.py", "from specaudit.core import records\n"),
}


def write_package(root: Path, files: dict[str, str]) -> None:
    for name, source in files.items():
        path = root / PACKAGE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")


@pytest.mark.parametrize("what", FORBIDDEN)
def test_a_forbidden_import_is_found(what: str, tmp_path: Path) -> None:
    name, source = FORBIDDEN[what]
    others = {part: f"{part}/__init__.py" for part in ("core", "report", "decoders", "cli", "checks", "trace")}
    write_package(tmp_path, {**dict.fromkeys(others.values(), ""), "__init__.py": "", name: source})
    (message,) = broken_arrows(read_imports(tmp_path))
    assert str(Path(PACKAGE) / name) in message
    assert "may not" in message or "has no row" in message


def test_an_allowed_import_is_not_reported(tmp_path: Path) -> None:
    source = (
        "import json\nimport torch\nfrom specaudit.core.errors import InputError\n"
        "from .resolution import resolve_decoder\nfrom specaudit import __version__\n"
    )
    write_package(tmp_path, {"__init__.py": "", "decoders/__init__.py": "", "decoders/own.py": source})
    assert broken_arrows(read_imports(tmp_path)) == []


def test_a_heavy_import_at_start_up_is_found(tmp_path: Path) -> None:
    files = {
        "__init__.py": "",
        "cli/__init__.py": "",
        "cli/main.py": "from specaudit.cli.run import run\n\ndef f():\n    from specaudit.cli.session import go\n",
        "cli/run.py": "from specaudit.cli import lists\nimport typer\n",
        "cli/lists.py": "from specaudit.report.terminal import print_report\n",
        "cli/session.py": "import rich\n",
    }
    write_package(tmp_path, files)
    (message,) = broken_start_up(read_imports(tmp_path), module_files(tmp_path))
    assert "specaudit.cli.lists imports specaudit.report.terminal" in message


# What Python itself says.

HEAVY = ("torch", "transformers", "numpy", "specaudit.runner")

QUICK = {
    "import specaudit": "import specaudit",
    "specaudit --help": "main('--help')",
    "specaudit run --help": "main('run', '--help')",
    "specaudit --version": "main('--version')",
    "specaudit decoders": "main('decoders')",
    "specaudit explain": "main('explain', 'nowhere', 'any')",
    "specaudit selftest --help": "main('selftest', '--help')",
    "a mistyped option": "main('run', '--dcoder', 'eqspec')",
}

PROGRAM = """
import sys

def main(*arguments):
    sys.argv = ["specaudit", *arguments]
    from specaudit.cli.main import main
    try:
        main()
    except SystemExit:
        pass

{statement}
print("imported:", *(name for name in {heavy} if name in sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize("what", QUICK)
def test_what_needs_no_model_imports_no_model_library(what: str) -> None:
    program = PROGRAM.format(statement=QUICK[what], heavy=HEAVY)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert result.stderr.splitlines()[-1].split() == ["imported:"]
