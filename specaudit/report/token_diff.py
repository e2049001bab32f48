"""Two outputs side by side, token under token, around the place where they part.

A stored run has ids and whole texts but no tokenizer, so the text of a token comes from outside: `token_texts` maps ids
to text. A token whose text is not known is shown as its id (`#318`), and the outputs' texts are shown as well, around
the first character that differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from specaudit.core.comparison import shared_length
from specaudit.report.visible_text import shorten, shorten_start, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from specaudit.core.comparison import Divergence
    from specaudit.core.records import CaseResult
    from specaudit.report.symbols import Symbols

TOKEN_CELLS = 16
"""Most terminal cells for the text of one token."""

CONTEXT_TOKENS = 8
"""Most tokens shown on either side of the divergence."""

_GAP = "  "
_MARK = "^"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """One place in both outputs, as shown."""

    position: str
    reference: str
    candidate: str

    @property
    def cells(self) -> int:
        return max(cell_len(self.position), cell_len(self.reference), cell_len(self.candidate))


def token_diff(
    case: CaseResult, symbols: Symbols, *, token_texts: Mapping[int, str] | None, width: int
) -> tuple[Text, ...]:
    """Return the lines, at most `width` cells each, that show where a case left the reference; none if it did not."""
    if case.first_divergence is None or case.output_ids is None:
        return ()
    lines = _token_lines(case, case.first_divergence, symbols, token_texts or {}, width)
    if _knows_all_texts(case, case.first_divergence, token_texts or {}):
        return lines
    if case.reference_text is None or case.output_text is None:  # recordings may have ids alone
        return lines
    return (*lines, *_text_lines(case.reference_text, case.output_text, symbols, width))


def token_name(token_id: int | None, symbols: Symbols, token_texts: Mapping[int, str] | None) -> str:
    """Return a token as id and text (`318 '·is'`), or `(end)` for None."""
    if token_id is None:
        return symbols.ended
    text = (token_texts or {}).get(token_id)
    return f"{token_id} '{_shown_text(text, symbols)}'" if text else str(token_id)


def ids_near(case: CaseResult) -> frozenset[int]:
    """Return the token ids that a diff of the case may show."""
    if case.first_divergence is None or case.output_ids is None:
        return frozenset()
    position = case.first_divergence.position
    near = slice(max(0, position - CONTEXT_TOKENS), position + CONTEXT_TOKENS + 1)
    return frozenset((*case.reference_ids[near], *case.output_ids[near]))


def _knows_all_texts(case: CaseResult, divergence: Divergence, token_texts: Mapping[int, str]) -> bool:
    at_divergence = [token for token in (divergence.expected, divergence.actual) if token is not None]
    return all(token_texts.get(token) for token in at_divergence)


def _token_lines(
    case: CaseResult, divergence: Divergence, symbols: Symbols, token_texts: Mapping[int, str], width: int
) -> tuple[Text, ...]:
    labels = ("token", "reference", "candidate", "")
    label_cells = max(cell_len(label) for label in labels)
    columns = _fitting_columns(case, divergence, symbols, token_texts, width - label_cells)
    rows: tuple[list[str], ...] = ([], [], [], [])
    for column in columns:
        mark = _MARK * column.cells if column.position == str(divergence.position) else ""
        for row, piece in zip(rows, (column.position, column.reference, column.candidate, mark), strict=True):
            row.append(_GAP + piece + " " * (column.cells - cell_len(piece)))
    lines = [Text(label.ljust(label_cells) + "".join(row).rstrip()) for label, row in zip(labels, rows, strict=True)]
    lines[0].stylize("dim")
    lines[-1].stylize("red")
    return tuple(lines)


def _fitting_columns(
    case: CaseResult, divergence: Divergence, symbols: Symbols, token_texts: Mapping[int, str], cells: int
) -> list[_Column]:
    """Return the columns around the divergence that fit into `cells`, taken alternately before and after it."""
    output_ids = case.output_ids or ()
    length = max(len(case.reference_ids), len(output_ids))
    chosen: dict[int, _Column] = {}
    for position in _outwards(divergence.position, length):
        column = _Column(
            position=str(position),
            reference=_piece(case.reference_ids, position, symbols, token_texts),
            candidate=_piece(output_ids, position, symbols, token_texts),
        )
        cells -= len(_GAP) + column.cells
        if cells < 0 and chosen:
            break
        chosen[position] = column
    return [chosen[position] for position in sorted(chosen)]


def _outwards(middle: int, length: int) -> Iterator[int]:
    """Yield the middle, then places ever further from it, before and after, inside 0..length - 1."""
    yield middle
    for distance in range(1, CONTEXT_TOKENS + 1):
        yield from (place for place in (middle - distance, middle + distance) if 0 <= place < length)


def _piece(ids: Sequence[int], position: int, symbols: Symbols, token_texts: Mapping[int, str]) -> str:
    """Return what one output shows at a position: the token's text, its id, `(end)` or nothing after that."""
    if position >= len(ids):
        return symbols.ended if position == len(ids) else ""
    text = token_texts.get(ids[position])
    return _shown_text(text, symbols) if text else f"#{ids[position]}"


def _shown_text(text: str, symbols: Symbols) -> str:
    shown = visible(text, marks_spaces=True, ascii_only=symbols.is_ascii)
    return shorten(shown, TOKEN_CELLS, ellipsis=symbols.ellipsis)


def _text_lines(reference: str, candidate: str, symbols: Symbols, width: int) -> tuple[Text, ...]:
    """Show two texts around the first character in which they differ."""
    labels = ("reference text  ", "candidate text  ")
    if reference == candidate:
        return (Text("the texts are equal; only the ids differ"),)
    shared = shared_length(reference, candidate)
    room = width - cell_len(labels[0])
    before = shorten_start(_shown(reference[:shared], symbols), room // 2, ellipsis=symbols.ellipsis)
    room -= cell_len(before)
    lines = []
    for label, text in zip(labels, (reference, candidate), strict=True):
        after = _shown(text[shared : shared + room + 1], symbols) if len(text) > shared else symbols.ended
        lines.append(Text(label + before + shorten(after, room, ellipsis=symbols.ellipsis)))
    mark = Text(" " * (cell_len(labels[0]) + cell_len(before)) + _MARK, style="red")
    return (*lines, mark)


def _shown(text: str, symbols: Symbols) -> str:
    return visible(text, marks_spaces=True, ascii_only=symbols.is_ascii)
