"""What is in the wheel and in the source archive: the package, the bundled files, the notices, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from specaudit import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[2]
BUNDLED = "specaudit/_bundled"
INFO = f"specaudit-{__version__}.dist-info"


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build both archives, without the network, and return their folder."""
    folder = tmp_path_factory.mktemp("archives")
    program = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--sdist",
        "--no-isolation",
        "--outdir",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(program, check=True, capture_output=True, text=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def wheel(archives: Path) -> ZipFile:
    (path,) = archives.glob("*.whl")
    assert path.name == f"specaudit-{__version__}-py3-none-any.whl"
    return ZipFile(path)


def tracked(folder: str, *, suffixes: Iterable[str] = ("",)) -> set[str]:
    """Return the files under `folder` that belong to the checkout, relative to it."""
    return {
        str(path.relative_to(ROOT / folder))
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.name.endswith(tuple(suffixes))
    }


def test_the_wheel_holds_the_whole_package(wheel: ZipFile) -> None:
    inside = {name.removeprefix("specaudit/") for name in wheel.namelist() if name.endswith(".py")}
    assert inside == tracked("specaudit", suffixes=(".py",))
    assert "specaudit/py.typed" in wheel.namelist()  # a type checker reads the annotations only where it finds this


def test_the_wheel_holds_models_and_prompts_as_they_are(wheel: ZipFile) -> None:
    for kind in ("models", "prompts"):
        prefix = f"{BUNDLED}/{kind}/"
        inside = {name.removeprefix(prefix) for name in wheel.namelist() if name.startswith(prefix)}
        assert inside == tracked(f"fixtures/{kind}")
        for name in inside:
            assert wheel.read(prefix + name) == (ROOT / "fixtures" / kind / name).read_bytes()
    assert f"{BUNDLED}/models/llama/target/model.safetensors" in wheel.namelist()
    assert f"{BUNDLED}/prompts/bundled.jsonl" in wheel.namelist()


def test_the_wheel_holds_both_licences(wheel: ZipFile) -> None:
    assert b"Python Software Foundation" in wheel.read(f"{BUNDLED}/PSF-LICENSE.txt")
    assert b"Apache License" in wheel.read(f"{INFO}/licenses/LICENSE")
    assert wheel.read(f"{INFO}/licenses/fixtures/PSF-LICENSE.txt") == wheel.read(f"{BUNDLED}/PSF-LICENSE.txt")


def test_the_wheel_holds_nothing_else(wheel: ZipFile) -> None:
    kinds = ("models", "prompts")
    others = [
        name
        for name in wheel.namelist()
        if not name.startswith((f"{INFO}/", *(f"{BUNDLED}/{kind}/" for kind in kinds)))
        and not (name.startswith("specaudit/") and name.endswith((".py", "/py.typed")))
    ]
    assert others == [f"{BUNDLED}/PSF-LICENSE.txt"]


def test_the_wheel_installs_the_command(wheel: ZipFile) -> None:
    assert "specaudit = specaudit.cli.main:main" in wheel.read(f"{INFO}/entry_points.txt").decode()


def test_the_source_archive_can_be_built_and_tested(archives: Path) -> None:
    (path,) = archives.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in ("pyproject.toml", "Makefile", "constraints.txt", "constraints-oldest.txt", "README.md", "LICENSE"):
        assert needed in names
    assert {f"tests/{name}" for name in tracked("tests", suffixes=(".py",))} <= names
    assert {f"docs/{name}" for name in tracked("docs")} <= names
    assert not [name for name in names if ".work" in name or "__pycache__" in name or name.startswith("runs/")]
