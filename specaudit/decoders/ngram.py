"""Drafting by prompt lookup: what followed the last few tokens when they occurred before, in the row's own stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from specaudit.decoders.rows import Row


class NgramDraft:
    """Proposes the tokens that followed the most recent earlier occurrence of a stream's last `size` tokens.

    A round needs its full number of proposals. Where what followed runs into the end of the stream, it is read on into the
    proposals themselves, so a loop of any period is continued. Where the last tokens did not occur before, there is
    nothing to look up and the last token is repeated.
    """

    def __init__(self, size: int) -> None:
        """Look for `size` tokens, 1 or more."""
        self.size = size

    def start(self, *, pad_token_id: int, device: torch.device) -> NgramDraftSession:
        """Return a session; the pad token is not used."""
        return NgramDraftSession(self, device)

    def continuation(self, stream: Sequence[int], count: int) -> list[int]:
        """Return `count` proposals for a stream of at least one token."""
        tokens = list(stream)
        source = _end_of_earlier_match(tokens, self.size)
        for place in range(count):
            tokens.append(tokens[source + place])
        return tokens[len(stream) :]


class NgramDraftSession:
    """Lookups for one decoder call."""

    def __init__(self, draft: NgramDraft, device: torch.device) -> None:
        """Propose from `draft` onto `device`."""
        self.draft = draft
        self.device = device

    def propose(self, rows: Sequence[Row], count: int) -> Tensor:
        """Return `count` proposals for each row, int64 [B, count]."""
        return torch.tensor([self.draft.continuation(row.stream, count) for row in rows], device=self.device)


def _end_of_earlier_match(tokens: list[int], size: int) -> int:
    """Return the index after the last earlier occurrence of the last `size` tokens; that of the last token if none."""
    wanted = tokens[-size:]
    for end in range(len(tokens) - 1, size - 1, -1):
        if tokens[end - size : end] == wanted:
            return end
    return len(tokens) - 1
