"""Reading the project's Markdown: documents, headings, links and code blocks."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "fixtures/*.md")
    for path in ROOT.glob(pattern)
    if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block of code."""

    document: Path
    """The document that it stands in."""

    line: int
    """Line of the opening fence, counted from 1."""

    language: str
    """What the fence names, or an empty string."""

    text: str
    """Content."""

    @property
    def commands(self) -> list[list[str]]:
        """Return the arguments of each `specaudit` command in it, comments left out."""
        lines = (line.strip().removeprefix("$ ") for line in self.text.splitlines())
        return [shlex.split(line, comments=True)[1:] for line in lines if re.match(r"specaudit( |$)", line)]


def name(document: Path) -> str:
    """Return the path of a document within the project."""
    return str(document.relative_to(ROOT))


def blocks(document: Path) -> list[Block]:
    """Return the fenced blocks of a document."""
    text = document.read_text(encoding="utf-8")
    return [
        Block(document=document, line=text.count("\n", 0, match.start()) + 1, language=match[1], text=match[2])
        for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    ]


def prose(document: Path) -> str:
    """Return a document without its fenced blocks and code spans."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`", "", text)


def links(document: Path) -> list[str]:
    """Return the targets of all links."""
    return re.findall(r"\]\(([^)\s]+)\)", prose(document))


def anchors(document: Path) -> set[str]:
    """Return the anchors of all headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def first_cells(document: Path, heading: str) -> list[str]:
    """Return the code in the first cell of each row of the tables under a heading, subheadings not included."""
    text = document.read_text(encoding="utf-8")
    section = re.split(r"^#+ ", text.partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"^\| `([^`]+)`", section, flags=re.MULTILINE)
