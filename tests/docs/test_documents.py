"""The documents as a whole: links lead somewhere, tables agree with the code, nothing private slips in."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from specaudit.core.vocabulary import Cause, Check, Compared, RunVerdict, Symptom, Sync, Verdict
from tests.docs.markdown import DOCUMENTS, ROOT, anchors, blocks, first_cells, links, name

if TYPE_CHECKING:
    from pathlib import Path


def test_there_are_documents() -> None:
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/verdicts.md"} <= {name(path) for path in DOCUMENTS}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_links_lead_somewhere(document: Path) -> None:
    for link in links(document):
        if link.startswith("https://"):
            continue
        place, _, anchor = link.partition("#")
        path = (document.parent / place).resolve() if place else document
        assert path.exists(), f"{name(document)} links to {link}"
        if anchor:
            assert anchor in anchors(path), f"{name(document)} links to {link}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_no_document_speaks_of_a_machine(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert not re.findall(r"(?<![\w.])/(?:home|root|work|opt|tmp|usr|Users)\b", text)


def test_every_document_is_linked_from_the_readme_or_the_decisions() -> None:
    linking = [ROOT / "README.md", ROOT / "docs" / "decisions" / "README.md", *(ROOT / "docs").glob("*.md")]
    linked = {(path.parent / link.partition("#")[0]).resolve() for path in linking for link in links(path)}
    assert [name(path) for path in DOCUMENTS if path.name != "README.template.md" and path not in linked] == [
        "README.md"
    ]


def test_tables_are_those_of_the_code() -> None:
    documents = [str(path) for path in DOCUMENTS]
    program = [sys.executable, str(ROOT / "scripts" / "refresh_tables.py"), "--check", *documents]
    result = subprocess.run(program, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr


def help_of(*command: str) -> str:
    program = [sys.executable, "-m", "specaudit", *command, "--help"]
    return subprocess.run(program, capture_output=True, text=True, check=True, timeout=120).stdout


def test_every_option_stands_in_the_command_line() -> None:
    commands = re.findall(r"^  (\w+)  ", help_of().partition("Commands:")[2], flags=re.MULTILINE)
    helps = [help_of(), *map(help_of, commands)]
    shown = {option for text in helps for option in re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, flags=re.MULTILINE)}
    document = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    listed = {
        option for row in re.findall(r"^\| (`-[^|]+)\|", document, flags=re.MULTILINE) for option in row.split("`")
    }
    assert shown - {"--help"} - listed == set()
    assert len(shown) > 20


VOCABULARIES = {
    "Verdict of a case": [*Verdict, *Compared],
    "Sync of a case": [*Sync],
    "Checks": [*Check],
    "Causes": [*Cause],
    "Symptoms": [*Symptom],
    "Verdict of a run": [*RunVerdict],
}


@pytest.mark.parametrize("heading", VOCABULARIES)
def test_every_word_of_a_closed_list_is_explained(heading: str) -> None:
    listed = first_cells(ROOT / "docs" / "verdicts.md", heading)
    assert sorted(listed) == sorted(word.value for word in VOCABULARIES[heading])


def test_decisions_are_numbered_listed_and_complete() -> None:
    folder = ROOT / "docs" / "decisions"
    files = sorted(path.name for path in folder.glob("0*.md"))
    assert [int(file[:4]) for file in files] == list(range(1, len(files) + 1))
    assert [link for link in links(folder / "README.md") if link.startswith("0")] == files
    for number, file in enumerate(files, start=1):
        text = (folder / file).read_text(encoding="utf-8")
        assert text.startswith(f"# {number}. ")
        headings = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequences"]
        assert text.partition("\n")[0].partition(". ")[2] in (folder / "README.md").read_text(encoding="utf-8")


def test_make_targets_that_documents_name_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    for document in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        text = document.read_text(encoding="utf-8")
        code = " \n".join([*re.findall(r"`([^`\n]+)`", text), *(block.text for block in blocks(document))])
        named = re.findall(r"(?:^|[ \n])make ((?:[a-z][a-z-]*\b ?)+)", code)
        assert {target for line in named for target in line.split()} <= targets
