"""From what was seen of a case to its causes, the origin first.

One fault has many consequences: a wrong position makes wrong keys, wrong keys make wrong logits, wrong logits wrong
tokens. The causes of a case are those of the earliest query at which a check failed; only where all that attention saw
was right are the choice of tokens and the end of the output looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.checks.causes.acceptance import acceptance_cause, unverified
from specaudit.checks.causes.context import context_cause
from specaudit.checks.causes.positions import position_cause
from specaudit.checks.scene import Scenery
from specaudit.checks.warrants import Standing
from specaudit.core.vocabulary import Check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.checks.causes.acceptance import DraftChoice
    from specaudit.checks.streams import Stream
    from specaudit.checks.warrants import TokenWarrant
    from specaudit.core.records import CauseFinding, Finding
    from specaudit.trace.records import Trace
    from specaudit.trace.trie import PrefixTrie


def trace_causes(
    trace: Trace,
    trie: PrefixTrie,
    stream: Stream,
    findings: Sequence[Finding],
    unwarranted: TokenWarrant | None,
    draft_choice: DraftChoice,
) -> tuple[CauseFinding, ...]:
    """Return why a violated case is so; `findings` are those of its checks, earliest first."""
    scenery = Scenery(trace, trie, stream)
    origin = next((finding for finding in findings if finding.check is not Check.WARRANT), None)
    if origin is not None:
        scene = scenery.scene(
            origin.step, origin.row, origin.query, layer=origin.layer, index=_index(origin, stream, scenery)
        )
        causes = [context_cause(scene, scenery), position_cause(scene, scenery)]
        found = tuple(cause for cause in causes if cause is not None)
        if found or unwarranted is None or unwarranted.standing is Standing.UNREAD:
            return found
    if unwarranted is None:
        return ()
    if unwarranted.standing is Standing.UNREAD:
        return (unverified(unwarranted, scenery),)
    cause = acceptance_cause(unwarranted, scenery, draft_choice)
    return () if cause is None else (cause,)


def _index(finding: Finding, stream: Stream, scenery: Scenery) -> int | None:
    known = scenery.index_at(finding.step, finding.row, finding.query)
    return finding.stream_index if known is None else known
