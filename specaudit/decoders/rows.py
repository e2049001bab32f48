"""What a batched decoder keeps of each row: its tokens, its budget, whether it is finished."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence


@dataclass(slots=True, kw_only=True)
class Row:
    """One prompt being continued."""

    index: int
    """Place of the prompt in the call; outputs are returned in this order."""

    prompt: Sequence[int]
    """Token ids of the prompt."""

    budget: int
    """Most tokens to generate."""

    eos_token_ids: Collection[int]
    """Ids that end the row, looked for in generated tokens only."""

    output: list[int] = field(default_factory=list)
    """Token ids generated so far, at most `budget`, nothing after an EOS."""

    @property
    def is_finished(self) -> bool:
        """Return whether the row ended by EOS or ran out of budget."""
        return len(self.output) >= self.budget or (bool(self.output) and self.output[-1] in self.eos_token_ids)

    @property
    def stream(self) -> list[int]:
        """Return prompt and output."""
        return [*self.prompt, *self.output]

    @property
    def length(self) -> int:
        """Return the number of tokens in prompt and output."""
        return len(self.prompt) + len(self.output)

    def commit(self, tokens: Iterable[int]) -> None:
        """Append tokens until the row is finished; the rest is dropped."""
        for token in tokens:
            if self.is_finished:
                return
            self.output.append(token)


def start_rows(prompts: Sequence[Sequence[int]], *, budget: int, eos_token_ids: Collection[int]) -> list[Row]:
    """Return one unfinished row a prompt, in order."""
    return [
        Row(index=index, prompt=prompt, budget=budget, eos_token_ids=eos_token_ids)
        for index, prompt in enumerate(prompts)
    ]
