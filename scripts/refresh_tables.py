"""Write the tables of the documents that the code knows: options, decoders, fields of records.

A document asks for a table with a comment, and the table stands between it and the next `<!-- end of table -->`::

    <!-- table: options run What to run -->
    <!-- table: decoders -->
    <!-- table: faults -->
    <!-- table: fields specaudit.core.records.CaseResult -->

Documents are given as arguments; with `--check` nothing is written, and the exit code says whether all are up to date.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from specaudit.cli.main import app
from specaudit.decoders.registry import BUILT_IN
from specaudit.faults.catalogue import FAULTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TABLE = re.compile(r"(<!-- table: (?P<kind>\w+) ?(?P<subject>[^>]*?) -->\n).*?(?=<!-- end of table -->)", re.DOTALL)

JSON_TYPES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "None": "null",
    "Mapping": "object",
}
"""JSON's names of types that records use; enumerations are strings, other records objects."""


def refreshed(document: str) -> str:
    """Return a document with all its tables written anew; raise ValueError for a table that cannot be made."""

    def write(match: re.Match[str]) -> str:
        maker = MAKERS.get(match["kind"])
        if maker is None:
            raise ValueError(f"no table of kind '{match['kind']}'")
        return f"{match[1]}\n{maker(match['subject'])}\n\n"

    return TABLE.sub(write, document)


def options_table(subject: str) -> str:
    """Return the options of a command: `run What to run` for one group of them, `specaudit` for those before it."""
    name, _, group = subject.partition(" ")
    program: Any = typer.main.get_command(app)
    command = program if name == "specaudit" else program.commands[name]
    options = [
        one for one in command.params if one.param_type_name == "option" and (one.rich_help_panel or "") == group
    ]
    if not options:
        raise ValueError(f"'{name}' has no options in '{group}'")
    return table(("option", "default", "what"), ((_names(option), _default(option), option.help) for option in options))


def decoders_table(subject: str) -> str:
    """Return the decoders that have a name."""
    rows = (
        (f"`{info.name}`", info.draft.value, _rows(info.max_batch_size), _outcome(info.is_lossless), info.summary)
        for info in BUILT_IN.values()
    )
    return table(("name", "draft", "batch size", "must be", "what"), rows)


def faults_table(subject: str) -> str:
    """Return the faults of the self-test."""
    rows = (
        (
            fault.group.value,
            f"`{fault.name}`",
            fault.imitates,
            " or ".join(f"`{cause.value}`" for cause in fault.causes),
        )
        for fault in FAULTS.values()
    )
    return table(("group", "name", "what it imitates", "right"), rows)


def fields_table(subject: str) -> str:
    """Return the fields of a record, by its dotted name, in their order."""
    module_name, _, class_name = subject.rpartition(".")
    record: type[Any] = getattr(importlib.import_module(module_name), class_name)
    notes = _notes(record)
    rows = (
        (f"`{field.name}`", _json_type(ast.parse(str(field.type), mode="eval").body), notes[field.name])
        for field in fields(record)
    )
    return table(("field", "type", "what"), rows)


MAKERS = {"options": options_table, "decoders": decoders_table, "faults": faults_table, "fields": fields_table}


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _names(option: Any) -> str:
    return ", ".join(f"`{name}`" for name in option.opts)


def _default(option: Any) -> str:
    return "" if option.is_flag or option.default is None or option.default is False else f"`{option.default}`"


def _rows(most: int | None) -> str:
    return "any" if most is None else f"{most} at most"


def _outcome(is_lossless: bool) -> str:
    return "lossless" if is_lossless else "caught"


def _notes(record: type[Any]) -> dict[str, str]:
    """Return the text below each field of a record's source."""
    (definition,) = ast.parse(inspect.getsource(record)).body
    assert isinstance(definition, ast.ClassDef)  # noqa: S101 (what `getsource` of a class gives)
    notes = {}
    for field, note in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(note, ast.Expr):
            text = " ".join(str(ast.literal_eval(note.value)).split())
            notes[field.target.id] = re.sub(r"\bNone\b", "null", text)
    return notes


def _json_type(annotation: ast.expr) -> str:
    match annotation:
        case ast.BinOp(left=left, right=right):
            return f"{_json_type(left)} or {_json_type(right)}"
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=[element, _])):
            return f"array of {_json_type(element)}"
        case ast.Subscript(value=value):
            return _json_type(value)
        case ast.Constant(value=None):
            return "null"
        case ast.Name(id=name):
            return JSON_TYPES.get(name, name)
    raise ValueError(f"no JSON type for {ast.unparse(annotation)}")


def main() -> int:
    """Rewrite the documents, or check them; return 0 when they are up to date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", type=Path, nargs="+", help="Markdown files")
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    stale = []
    for path in options.documents:
        before = path.read_text(encoding="utf-8")
        after = refreshed(before)
        if after != before:
            stale.append(path)
            if not options.check:
                path.write_text(after, encoding="utf-8")
    for path in stale:
        print(f"{path}: {'out of date: run `make docs`' if options.check else 'rewritten'}")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
