"""What the end of a stream rests on: failed attempts whose slots were kept, though their tokens were fed soundly as well.

Tokens are fed more than once by decoders that feed the last one again, roll back further than they must, or draft with the
target itself. A failed attempt does no harm when its slot was dropped and its logits chose nothing; it does when the last
query of the stream saw its slot, directly or through the slots that it saw, or when it alone chose the next token. Tokens
of prompts that begin alike may be fed by the row of another stream; that excuses no fault in the stream's own row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from specaudit.trace.records import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specaudit.checks.streams import Attempt, Stream
    from specaudit.core.records import Finding
    from specaudit.trace.records import Trace

    Failures = Mapping[Attempt, tuple[Finding, ...] | None]
    """Findings of each attempt: () for a sound one, None for one in a step that was not observed."""


def harmful_attempts(trace: Trace, stream: Stream, failures: Failures) -> list[Attempt]:
    """Return the failed attempts of the stream's own rows on which an emitted token rests, though others were sound."""
    if not any(failures.values()):
        return []
    return _Resting(trace, stream, failures).harmful()


class _Resting:
    """Follows a stream back from its last query."""

    def __init__(self, trace: Trace, stream: Stream, failures: Failures) -> None:
        self.trace = trace
        self.stream = stream
        self.failures = failures
        self.own = [
            attempt for attempts in stream.attempts[:-1] for attempt in attempts if attempt.sees_itself
        ]  # one that does not see itself may be padding

    def harmful(self) -> list[Attempt]:
        """Return the failed attempts that do harm."""
        kept = self._writes_rested_on()
        failed = [attempt for attempt in self.own if self.failures[attempt]]
        return [
            attempt
            for attempt in failed
            if attempt.write in kept or self._chose_alone(attempt) or self._is_excused_by_others(attempt)
        ]

    def _writes_rested_on(self) -> set[int]:
        """Return the writes behind all slots that the last query saw and that those were made from.

        A slot with the bits of a sound attempt is sound, whoever wrote it.
        """
        sound_writes = {attempt.write for attempt, findings in self.failures.items() if findings == ()}
        by_write = {attempt.write: attempt for attempt in self.own}
        last = [attempt for attempt in self.own if attempt.stream_index == len(self.stream.tokens) - 2]
        sound = [attempt for attempt in last if self.failures[attempt] == ()]
        waiting = sound or [attempt for attempt in last if not self._is_consistent(attempt)]
        seen: set[int] = set()
        kept: set[int] = set()
        while waiting:
            new = self._contents_seen(waiting.pop()) - seen
            seen |= new
            for writes in (self.trace.writes_of[content] for content in new):
                sound_ones = sound_writes.intersection(writes)
                waiting += [by_write[write] for write in sound_ones or writes if write in by_write]
                kept |= set() if sound_ones else set(writes)
        return kept

    def _contents_seen(self, attempt: Attempt) -> set[int]:
        view = self.trace.steps[attempt.step].views[0]
        columns = np.flatnonzero(view.visible[attempt.row, attempt.query])
        return set(view.contents[attempt.row, columns].tolist()) - {UNKNOWN}

    def _is_excused_by_others(self, attempt: Attempt) -> bool:
        """Return whether rows of other streams alone fed the token soundly, and this attempt is right for no prefix."""
        own = self.stream.attempts[attempt.stream_index]
        return not self._is_consistent(attempt) and all(self.failures[other] != () for other in own)

    def _is_consistent(self, attempt: Attempt) -> bool:
        """Return whether an attempt's position is the number of slots before it: it may follow a rejected draft."""
        step = self.trace.steps[attempt.step]
        if step.position_ids is None:
            return True
        view = step.views[0]
        length = int(step.position_ids[attempt.row, attempt.query]) + 1
        expected = length if view.window is None else min(length, view.window)
        return int(view.visible[attempt.row, attempt.query].sum()) == expected

    def _chose_alone(self, attempt: Attempt) -> bool:
        """Return whether a failed attempt's logits chose the next token of the output, and no sound attempt's did."""
        index = attempt.stream_index
        if index < self.stream.prompt_length - 1 or not self._chose(attempt):
            return False
        others = (*self.stream.attempts[index], *self.stream.shared[index])
        sound = [other for other in others if self.failures[other] == ()]
        return bool(sound) and all(self._chose(other) is False for other in sound)

    def _chose(self, attempt: Attempt) -> bool | None:
        """Return whether the next token attains the maximum of the logits, or None where they were not seen."""
        step = self.trace.steps[attempt.step]
        place = attempt.row, attempt.query
        if step.top_ids is None or step.top_ids[place][0] == UNKNOWN:
            return None
        token = self.stream.tokens[attempt.stream_index + 1]
        return token in step.tied_ids.get(place, ()) or token == int(step.top_ids[place][0])
