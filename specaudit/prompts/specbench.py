"""SpecBench files: `question_id`, `category` and `turns`, of which the first is the prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.errors import InputError
from specaudit.core.prompt import Prompt
from specaudit.prompts.records import shown, well_formed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.prompts.records import Record

FIELDS = frozenset({"question_id", "category", "turns"})
"""Fields by which a SpecBench record is known."""


def is_specbench(record: Record) -> bool:
    """Say whether a record has the fields of a SpecBench question."""
    return record.fields.keys() >= FIELDS


def specbench_prompts(records: Sequence[Record]) -> list[Prompt]:
    """Return the first turn of each question as a plain text, with its question id and category.

    Later turns ask about the model's own answer to the first, so they have no prompt of their own.

    Raises:
        InputError: a record lacks one of the three fields, or its first turn is not a text or is empty.
    """
    return [_prompt(record) for record in records]


def _prompt(record: Record) -> Prompt:
    where = record.line.where
    if not is_specbench(record):
        missing = ", ".join(sorted(FIELDS - record.fields.keys()))
        raise InputError(
            f"not a SpecBench question: no {missing}; fields found: {', '.join(record.fields) or 'none'}",
            where=where,
            way_out="for another JSON Lines file, leave 'specbench:' out and name its field with --field",
        )
    turns = record.fields["turns"]
    if not isinstance(turns, list) or not turns or not isinstance(turns[0], str) or not turns[0]:
        raise InputError(
            f"field 'turns' does not start with a text: {shown(turns)}",
            where=where,
            way_out="write the turns as a list of texts",
        )
    return Prompt(
        prompt_id=record.prompt_id(),
        text=well_formed(turns[0], where=where),
        category=record.category(),
        source=where,
    )
