"""Faults in acceptance: everything that attention saw was right, and another token is committed than the target chose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.vocabulary import Cause
from specaudit.decoders.acceptance import committed_tokens
from specaudit.faults.fault import Fault, Group, Injection
from specaudit.faults.moments import ROW, lasting, once

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from specaudit.faults.fault import Turn


def _verified(turn: Turn) -> tuple[Tensor, Tensor, Tensor]:
    """Return proposals [B, K + 1], predictions [B, K + 1] and accepted counts [B] of a round."""
    assert turn.proposals is not None  # noqa: S101 (faults are made in rounds)
    assert turn.predictions is not None  # noqa: S101
    assert turn.accepted is not None  # noqa: S101
    return turn.proposals, turn.predictions, turn.accepted


def _has_room(turn: Turn, place: int) -> bool:
    """Return whether a row's budget takes what this round commits, and two tokens more."""
    row = turn.rows[place]
    return turn.running[place] and row.budget - len(row.output) >= len(turn.committed[place]) + 2


def _other_bonus(choose: Callable[[Turn, int], int | None]) -> Callable[[Turn], bool]:
    """Return a change that takes another bonus for the row, where there is one and it differs."""

    def change(turn: Turn) -> bool:
        token = choose(turn, ROW)
        if token is None or token == turn.committed[ROW][-1] or not _has_room(turn, ROW):
            return False
        turn.committed[ROW][-1] = token
        turn.mark(ROW)
        return True

    return change


def _of_the_draft(turn: Turn, place: int) -> int | None:
    proposals, predictions, accepted = _verified(turn)
    token = int(proposals[place, accepted[place]])
    return None if bool((predictions == token).any()) else token  # else it could be another row's


def _of_another_row(turn: Turn, place: int) -> int | None:
    proposals, _, accepted = _verified(turn)
    token = turn.committed[place - 1][-1]
    return None if token == int(proposals[place, accepted[place]]) else token


def _behind_the_rejected(turn: Turn, place: int) -> int | None:
    proposals, predictions, accepted = _verified(turn)
    after = int(accepted[place]) + 1
    if after >= predictions.shape[1]:
        return None
    token = int(predictions[place, after])
    return None if token == int(proposals[place, after - 1]) else token


def _of_the_last_query(turn: Turn, place: int) -> int | None:
    proposals, predictions, accepted = _verified(turn)
    if int(accepted[place]) + 1 >= predictions.shape[1]:
        return None
    token = int(predictions[place, -1])
    return None if token == int(proposals[place, accepted[place]]) else token


def _accepting(count: Callable[[Tensor, int], Tensor]) -> Callable[[Turn], bool]:
    """Return a change that accepts other numbers of proposals, [B], given the right ones and K."""

    def change(turn: Turn) -> bool:
        proposals, predictions, accepted = _verified(turn)
        fed = proposals[:, :-1]
        more = count(accepted, fed.shape[1])
        changed = [
            place
            for place in range(len(turn.rows))
            if int(more[place]) > int(accepted[place])
            and turn.running[place]
            and _fits(turn, place, int(accepted[place]))
        ]
        if not changed:
            return False
        turn.accepted = accepted.clone()
        turn.accepted[changed] = more[changed]
        turn.committed = committed_tokens(fed, predictions, turn.accepted)
        for place in changed:
            turn.mark(place)
        return True

    return change


def _fits(turn: Turn, place: int, accepted: int) -> bool:
    """Return whether a row's budget takes one accepted token more, and another behind it."""
    row = turn.rows[place]
    return row.budget - len(row.output) > accepted + 1


def _one_more_in_the_row(accepted: Tensor, most: int) -> Tensor:
    more = accepted.clone()
    more[ROW] = min(int(more[ROW]) + 1, most)
    return more


def _edited(edit: Callable[[list[int], int], None]) -> Injection:
    """Return a fault that edits an output at the place of a bonus; what is fed stays right.

    The place is one behind which the text does not repeat itself: there a token dropped is another token said twice.
    """
    bonuses: list[tuple[Turn, int, int]] = []  # turn, place of the row in the batch, place of the bonus in the output

    def note(turn: Turn) -> bool:
        bonuses.extend(
            (turn, place, len(row.output) + len(turn.committed[place]) - 1)
            for place, row in enumerate(turn.rows)
            if turn.running[place]
        )
        return True

    def outputs(outputs: list[list[int]], pad_token_id: int) -> list[list[int]]:
        for turn, row, place in sorted(bonuses, key=lambda bonus: bonus[1] != ROW):
            index = turn.rows[row].index
            around = outputs[index][place : place + 4]
            if len(around) == 4 and around[0] not in around[1:]:
                turn.marks[index] = turn.step
                edit(outputs[index], place)
                break
        return outputs

    return Injection(verify=lasting(note), outputs=outputs)


def _drop(output: list[int], place: int) -> None:
    del output[place]


def _repeat(output: list[int], place: int) -> None:
    output.insert(place, output[place])
    output.pop()


FAULTS = (
    Fault(
        name="bonus-dropped",
        group=Group.ACCEPTANCE,
        imitates="The bonus is fed in the next round and never appended to the output.",
        causes=(Cause.TOKEN_DROPPED,),
        make=lambda: _edited(_drop),
    ),
    Fault(
        name="token-repeated",
        group=Group.ACCEPTANCE,
        imitates="The pending token is appended to the output twice, as bonus and as the next block's first.",
        causes=(Cause.TOKEN_REPEATED,),
        make=lambda: _edited(_repeat),
        origin=1,  # what follows is chosen in the next round
    ),
    Fault(
        name="bonus-from-the-draft",
        group=Group.ACCEPTANCE,
        imitates="The token after the accepted proposals is sampled from the draft.",
        causes=(Cause.BONUS_FROM_DRAFT,),
        make=lambda: Injection(verify=once(_other_bonus(_of_the_draft))),
    ),
    Fault(
        name="bonus-of-another-row",
        group=Group.ACCEPTANCE,
        imitates="The bonus is gathered with the row index of its neighbour.",
        causes=(Cause.BONUS_WRONG,),
        make=lambda: Injection(verify=once(_other_bonus(_of_another_row))),
    ),
    Fault(
        name="bonus-behind-the-rejected",
        group=Group.ACCEPTANCE,
        imitates="The bonus is gathered one place too far, behind the first rejected proposal.",
        causes=(Cause.BONUS_WRONG,),
        make=lambda: Injection(verify=once(_other_bonus(_behind_the_rejected))),
        replaced=1.0,
    ),
    Fault(
        name="bonus-of-the-last-query",
        group=Group.ACCEPTANCE,
        imitates="The bonus is always taken from the last logits of the block.",
        causes=(Cause.BONUS_WRONG,),
        make=lambda: Injection(verify=once(_other_bonus(_of_the_last_query))),
        replaced=1.0,
    ),
    Fault(
        name="mismatch-accepted",
        group=Group.ACCEPTANCE,
        imitates="One proposal more is accepted than the target agrees with.",
        causes=(Cause.ACCEPTED_MISMATCH,),
        make=lambda: Injection(verify=once(_accepting(_one_more_in_the_row))),
    ),
    Fault(
        name="everything-accepted",
        group=Group.ACCEPTANCE,
        imitates="Proposals are taken over without looking at what the target chose.",
        causes=(Cause.ACCEPTED_MISMATCH,),
        make=lambda: Injection(
            verify=lasting(_accepting(lambda accepted, most: accepted.new_full(accepted.shape, most)))
        ),
    ),
    Fault(
        name="batch-maximum-accepted",
        group=Group.ACCEPTANCE,
        imitates="Every row accepts as many proposals as the luckiest row of the batch.",
        causes=(Cause.ACCEPTED_MISMATCH,),
        make=lambda: Injection(verify=lasting(_accepting(lambda accepted, most: accepted.max().expand_as(accepted)))),
    ),
    Fault(
        name="end-unverified",
        group=Group.ACCEPTANCE,
        imitates="When the budget is nearly spent, the draft's tokens fill it without a forward of the target.",
        causes=(Cause.UNVERIFIED_TOKEN,),
        make=lambda: Injection(skips_last=True),
        replaced=1.0,
        origin=None,
    ),
)
