"""Tables: CSV and TSV files with a header line."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specaudit.core.errors import InputError
from specaudit.prompts.lines import line_id
from specaudit.prompts.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from specaudit.prompts.document import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    cells: list[str]
    line: int
    """Line on which it begins, counted from 1; a quoted cell may span lines."""


def table_records(document: Document, *, delimiter: str) -> list[Record]:
    """Return one record per row below the header, which names the fields; blank lines are skipped.

    Raises:
        InputError: the header names a column twice, there is no row below it, a quote is not closed, or a row has
            another number of cells than the header.
    """
    header, *rows = _rows(document, delimiter)
    names = [name.strip() for name in header.cells]
    twice = next((name for name, count in Counter(names).items() if name and count > 1), None)
    if twice is not None:
        raise InputError(
            f"the header names the column '{twice}' twice",
            where=document.where(header.line),
            way_out="give each column a name of its own",
        )
    if not rows:
        raise InputError(
            "there is no row below the header", where=document.where(header.line), way_out="add at least one prompt"
        )
    return [_record(row, names, document) for row in rows]


def _record(row: _Row, names: list[str], document: Document) -> Record:
    where = document.where(row.line)
    if len(row.cells) != len(names):
        raise InputError(
            f"the row and the header differ in their number of cells: {len(row.cells)} and {len(names)}",
            where=where,
            way_out="put a cell that holds the delimiter or a line break in quotes",
        )
    return Record(fields=dict(zip(names, row.cells, strict=True)), where=where, fallback_id=line_id(row.line))


def _rows(document: Document, delimiter: str) -> Iterator[_Row]:
    # Lines end at LF alone, as in every other format: a lone CR or U+2028 does not count as a line.
    reader = csv.reader(io.StringIO(document.text, newline="\n"), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(
                f"not a row of a table: {error}",
                where=document.where(line),
                way_out='put a cell that holds quotes in quotes and double them: "a ""word"""',
            ) from error
        if any(cell.strip() for cell in cells):
            yield _Row(cells=cells, line=line)
