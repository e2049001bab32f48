"""Faults in stopping: the tokens are right as far as they go, the end is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.vocabulary import Cause
from specaudit.faults.fault import End, Fault, Group, Injection

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from specaudit.decoders.rows import Row


def _commit_within_budget(row: Row, tokens: Iterable[int]) -> None:
    row.output.extend(list(tokens)[: row.budget - len(row.output)])


def _commit_all(row: Row, tokens: Iterable[int]) -> None:
    row.output.extend(tokens)


def _is_full(row: Row) -> bool:
    return len(row.output) >= row.budget


def _has_ended(row: Row) -> bool:
    return _is_full(row) or any(token in row.eos_token_ids for token in row.output)


def _commit_one(row: Row, tokens: Iterable[int]) -> None:
    if not _has_ended_anywhere(row) or not row.output:
        row.commit(tokens)


def _has_ended_anywhere(row: Row) -> bool:
    return _is_full(row) or any(token in row.eos_token_ids for token in row.stream)


def _until_one_ends(rows: Sequence[Row]) -> bool:
    return not any(row.is_finished for row in rows)


def _is_nearly_full(row: Row) -> bool:
    return row.is_finished or len(row.output) >= row.budget - 4


FAULTS = (
    Fault(
        name="eos-ignored",
        group=Group.STOPPING,
        imitates="No row looks for an end of sequence; all fill their budget.",
        causes=(Cause.MISSED_EOS,),
        make=lambda: Injection(commit=_commit_within_budget, is_finished=_is_full),
        end=End.IN_OUTPUT,
        replaced=0.0,
        origin=None,
    ),
    Fault(
        name="eos-in-draft-ignored",
        group=Group.STOPPING,
        imitates="Only the last token of a round is compared with the end of sequence.",
        causes=(Cause.MISSED_EOS,),
        make=lambda: Injection(commit=_commit_within_budget),
        end=End.IN_OUTPUT,
        replaced=0.0,
        origin=None,
    ),
    Fault(
        name="tail-after-eos",
        group=Group.STOPPING,
        imitates="The row ends, and the rest of the block that held the end of sequence is returned.",
        causes=(Cause.TAIL_AFTER_EOS,),
        make=lambda: Injection(commit=_commit_within_budget, is_finished=_has_ended),
        end=End.IN_OUTPUT,
        replaced=0.0,
        origin=None,
    ),
    Fault(
        name="prompt-eos-ends",
        group=Group.STOPPING,
        imitates="The end of sequence is looked for in prompt and output together.",
        causes=(Cause.PROMPT_EOS,),
        make=lambda: Injection(commit=_commit_one, is_finished=_has_ended_anywhere),
        end=End.IN_PROMPT,
        origin=None,
    ),
    Fault(
        name="all-end-with-the-first",
        group=Group.STOPPING,
        imitates="The loop ends when one row has ended.",
        causes=(Cause.EARLY_STOP,),
        make=lambda: Injection(goes_on=_until_one_ends),
        end=End.IN_OUTPUT,
        replaced=0.0,
        origin=None,
    ),
    Fault(
        name="no-round-for-the-rest",
        group=Group.STOPPING,
        imitates="No round is run any more when the budget would not take a whole one.",
        causes=(Cause.EARLY_STOP,),
        make=lambda: Injection(is_finished=_is_nearly_full),
        origin=None,
    ),
    Fault(
        name="over-budget",
        group=Group.STOPPING,
        imitates="The last round is returned whole, budget or not.",
        causes=(Cause.OVER_BUDGET,),
        make=lambda: Injection(commit=_commit_all),
        replaced=0.0,
        origin=None,
    ),
)
