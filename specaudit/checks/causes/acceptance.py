"""Causes in acceptance: every slot and position is right, and the output holds another token than the target chose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.checks.warrants import Standing, TokenWarrant
from specaudit.core.records import CauseFinding
from specaudit.core.vocabulary import Cause

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from specaudit.checks.scene import Scenery
    from specaudit.trace.records import Step
    from specaudit.trace.trie import Reading

    DraftChoice = Callable[[Sequence[int]], int | None]
    """The token that the draft would propose after a prefix, or None where that is not known."""


CHOICES = frozenset(
    {
        Cause.ACCEPTED_MISMATCH,
        Cause.BONUS_FROM_DRAFT,
        Cause.BONUS_WRONG,
        Cause.TOKEN_DROPPED,
        Cause.TOKEN_REPEATED,
    }
)
"""Causes of which all that attention saw was right; their stream index is that of the token chosen after the query's."""


def acceptance_cause(warrant: TokenWarrant, scenery: Scenery, draft_choice: DraftChoice) -> CauseFinding | None:
    """Return why an output token is not one that the target chose, or None for a token that it chose."""
    if warrant.standing is not Standing.NOT_CHOSEN:
        return None
    reading = next(reading for reading in reversed(warrant.readings) if reading.top_ids)
    index, tokens = warrant.stream_index, scenery.stream.tokens
    chosen, token = reading.top_ids[0], tokens[index]
    for search in (_dropped, _repeated):
        if search(warrant, scenery, chosen):
            cause = Cause.TOKEN_DROPPED if search is _dropped else Cause.TOKEN_REPEATED
            return _found(cause, reading, index, _told(cause, index, scenery, token, chosen))
    proposing = next((one for one in warrant.readings if _proposed(one, scenery) == token), None)
    if proposing is not None:
        cause = Cause.ACCEPTED_MISMATCH if _was_kept(proposing, index, scenery) else Cause.BONUS_FROM_DRAFT
        return _found(cause, proposing, index, _told(cause, index, scenery, token, chosen))
    step = scenery.trace.steps[reading.step]
    place = _chosen_elsewhere(step, reading, token)
    if place is not None:
        evidence = f"output has token id {token}, which the target chose at {place}; here it chose {chosen}"
        return _found(Cause.BONUS_WRONG, reading, index, evidence)
    cause = Cause.BONUS_FROM_DRAFT if draft_choice(tokens[:index]) == token else Cause.BONUS_WRONG
    return _found(cause, reading, index, _told(cause, index, scenery, token, chosen))


def unverified(warrant: TokenWarrant, scenery: Scenery) -> CauseFinding:
    """Return the finding for an output token at whose prefix no forward was run."""
    place = warrant.stream_index - scenery.stream.prompt_length
    return CauseFinding(
        cause=Cause.UNVERIFIED_TOKEN,
        step=None,
        row=None,
        query=None,
        stream_index=warrant.stream_index,
        evidence=f"the target never read the prefix of output token {place}, though every forward was observed",
    )


def _found(cause: Cause, reading: Reading, index: int, evidence: str) -> CauseFinding:
    return CauseFinding(
        cause=cause, step=reading.step, row=reading.row, query=reading.query, stream_index=index, evidence=evidence
    )


def _told(cause: Cause, index: int, scenery: Scenery, token: int, chosen: int) -> str:
    place = index - scenery.stream.prompt_length
    how = {
        Cause.TOKEN_DROPPED: f"the target chose {chosen}, which is missing, and then {token}",
        Cause.TOKEN_REPEATED: f"{token} stands there once more, the target chose {chosen}",
        Cause.ACCEPTED_MISMATCH: f"the proposal {token} was accepted, the target chose {chosen}",
        Cause.BONUS_FROM_DRAFT: f"it is {token}, the draft's own, the target chose {chosen}",
        Cause.BONUS_WRONG: f"it is {token}, the target chose {chosen}, and nothing seen chose {token}",
    }
    return f"output token {place}: {how[cause]}"


def _proposed(reading: Reading, scenery: Scenery) -> int | None:
    """Return the token fed next after a reading in its own block, or None."""
    ids = scenery.trace.steps[reading.step].input_ids
    if ids is None or reading.query + 1 >= ids.shape[1]:
        return None
    return int(ids[reading.row, reading.query + 1])


def _dropped(warrant: TokenWarrant, scenery: Scenery, chosen: int) -> bool:
    """Return whether the output goes on as if the chosen token stood before the given one."""
    tokens, index, trie = scenery.stream.tokens, warrant.stream_index, scenery.trie
    node = trie.find([*tokens[:index], chosen])
    matched = 0
    for token in tokens[index:]:
        if node is None or not any(token in reading.top_ids for reading in trie.readings[node]):
            break
        matched += 1
        node = trie.children.get((node, token))
    return matched > min(1, len(tokens) - 1 - index)


def _repeated(warrant: TokenWarrant, scenery: Scenery, chosen: int) -> bool:
    tokens, index = scenery.stream.tokens, warrant.stream_index
    if tokens[index] != tokens[index - 1] or index == scenery.stream.prompt_length:
        return False
    if scenery.trie.find(tokens[: index + 2]) is not None:  # it was fed in its place, and the output goes on from there
        return False
    return index + 1 < len(tokens) and tokens[index + 1] == chosen


def _was_kept(reading: Reading, index: int, scenery: Scenery) -> bool:
    """Return whether the proposal after a reading was taken over as accepted, rather than given out as the bonus.

    What was accepted keeps its slot; a bonus is fed at the beginning of a later block. Without a cache all is fed again,
    and the bonus is the token before the next proposals, of which there are as many as in the first step.
    """
    later = sorted({attempt.step for attempt in scenery.stream.attempts[index] if attempt.step > reading.step})
    if not later:
        return True
    if any(index_at < index for index_at in scenery.block(later[0], reading.row).values()):
        proposals = _fed(0, reading.row, scenery) - scenery.stream.prompt_length
        return index != _fed(later[0], reading.row, scenery) - proposals - 1
    return False


def _fed(step: int, row: int, scenery: Scenery) -> int:
    """Return how many tokens a row fed in a step from its first stream token on."""
    ids = scenery.trace.steps[step].input_ids
    block = scenery.block(step, row)
    return 0 if ids is None or not block else int(ids.shape[1]) - min(block)


def _chosen_elsewhere(step: Step, reading: Reading, token: int) -> str | None:
    """Return where else in a step the target chose a token: in the same row first, then in another."""
    if step.top_ids is None:
        return None
    rows, queries = step.top_ids.shape[:2]
    for row in sorted(range(rows), key=lambda row: row != reading.row):
        for query in range(queries):
            if int(step.top_ids[row, query, 0]) == token and (row, query) != (reading.row, reading.query):
                return f"query {query} of the row" if row == reading.row else f"row {row}, query {query}"
    return None
