"""SpecBench files: `question_id`, `category`, `turns` and, for some questions, `reference` answers beside the turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.errors import InputError, UsageError
from specaudit.core.prompt import Prompt
from specaudit.prompts.gold import check_gold_field, gold_answer
from specaudit.prompts.records import shown, well_formed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.prompts.records import Record

FIELDS = frozenset({"question_id", "category", "turns"})
"""Fields by which a SpecBench record is known."""

LAST_TURN = 2
"""No SpecBench question has more turns."""


def is_specbench(record: Record) -> bool:
    """Say whether a record has the fields of a SpecBench question."""
    return record.fields.keys() >= FIELDS


def first_turns(records: Sequence[Record], *, gold_field: str | None = None) -> list[Prompt]:
    """Return the first turn of each question as a plain text, with its question id, category and gold answer.

    Raises:
        InputError: a record lacks one of the three fields, or its turns are not texts.
    """
    check_gold_field(records, gold_field)
    return [
        Prompt(
            prompt_id=record.prompt_id(),
            text=_turns(record)[0],
            category=record.category(),
            gold=gold_answer(record, field=gold_field, turn=1),
            source=record.where,
        )
        for record in records
    ]


def second_turns(records: Sequence[Record], *, gold_field: str | None = None) -> list[Prompt]:
    """Return the questions that have a second turn, which asks about the model's own answer to the first.

    Their ids end in `-turn2`: another question than the first turn's. What they are in full depends on the target, so
    they are left open (`Prompt.follow_up`) until the reference has answered.

    Raises:
        InputError: as for `first_turns`.
        UsageError: no question has a second turn.
    """
    check_gold_field(records, gold_field)
    asked_twice = [record for record in records if len(_turns(record)) >= LAST_TURN]
    if not asked_twice:
        raise UsageError(
            "no question of the file has a second turn",
            where="--turn 2",
            way_out="leave --turn out to ask the first ones",
        )
    return [
        Prompt(
            prompt_id=f"{record.prompt_id()}-turn{LAST_TURN}",
            text=_turns(record)[0],
            follow_up=_turns(record)[1],
            category=record.category(),
            gold=gold_answer(record, field=gold_field, turn=LAST_TURN),
            source=record.where,
        )
        for record in asked_twice
    ]


def _turns(record: Record) -> list[str]:
    if not is_specbench(record):
        missing = ", ".join(sorted(FIELDS - record.fields.keys()))
        raise InputError(
            f"not a SpecBench question: no {missing}; fields found: {', '.join(record.fields) or 'none'}",
            where=record.where,
            way_out="for another JSON Lines file, leave 'specbench:' out and name its field with --field",
        )
    turns = record.fields["turns"]
    if not isinstance(turns, list) or not turns or not all(isinstance(turn, str) and turn for turn in turns):
        raise InputError(
            f"field 'turns' is not a list of texts: {shown(turns)}",
            where=record.where,
            way_out="write the turns as a list of texts, none of them empty",
        )
    return [well_formed(turn, where=record.where) for turn in turns]
