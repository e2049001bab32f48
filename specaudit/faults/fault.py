"""What a fault is: one thing that a correct decoder does wrong, and what an auditor should make of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from torch import Tensor

    from specaudit.batch.cache import SlotCache
    from specaudit.core.vocabulary import Cause
    from specaudit.decoders.rows import Row


class Layout(StrEnum):
    """How a decoder keeps its cache."""

    CONTIGUOUS = "contiguous"
    """Rejected slots are cut and every row is moved flush right again, each round."""

    HOLES = "holes"
    """Slots never move; rejected ones stay and are masked, and positions are stated."""

    STATIC = "static"
    """The same in a cache of a size set beforehand."""


IN_PLACE = (Layout.HOLES, Layout.STATIC)
"""Layouts in which slots never move."""


class Group(StrEnum):
    """What a fault breaks."""

    POSITIONS = "positions"
    MASKS = "masks"
    CACHE = "cache"
    ACCEPTANCE = "acceptance"
    STOPPING = "stopping"
    OUTPUTS = "outputs"


class End(StrEnum):
    """Where an end of sequence stands in a trial."""

    NOWHERE = "nowhere"
    """Every output fills its budget."""

    IN_OUTPUT = "in an output"
    """Among the accepted proposals of a round, with budget left behind it."""

    IN_PROMPT = "in a prompt"
    """Inside a prompt, and in no output."""


@dataclass(slots=True, kw_only=True)
class Turn:
    """One forward of the decoder: what it is about to pass on, then what it made of it. A fault changes what it finds."""

    step: int
    """Target forward: 0 is the prefill, n the n-th round."""

    rows: list[Row]
    """The row in each place of the batch."""

    running: list[bool]
    """Whether each is still being decoded."""

    rejected: list[int]
    """Proposals that each row rejected in the round before."""

    old_width: int
    """Columns of the cache before this forward, after any realignment."""

    cache: SlotCache
    """The target's cache."""

    kept: list[int]
    """Tokens of each row that stay in the cache, set before realignment."""

    seen: Tensor | None = None
    """Whether a row's queries may see a slot, those of this block included, bool [B, n + q]."""

    indices: Tensor | None = None
    """Place in the row's stream of what each slot holds, int64 [B, n + q]; -1 for padding."""

    position_ids: Tensor | None = None
    """Positions to state, int64 [B, q], or None to leave them to the model."""

    proposals: Tensor | None = None
    """The proposals of this round and one more that is not fed, int64 [B, K + 1]; None in the prefill."""

    predictions: Tensor | None = None
    """The target's choice after each token fed, int64 [B, K + 1]."""

    accepted: Tensor | None = None
    """Proposals accepted in each row, int64 [B]."""

    committed: list[list[int]] = field(default_factory=list)
    """Tokens that each row goes on with, the accepted proposals and the bonus."""

    marks: dict[int, int] = field(default_factory=dict)
    """Step in which the fault first touched a row, by index of the prompt."""

    def mark(self, place: int) -> None:
        """Note that the fault touched the row in a place of the batch."""
        if self.running[place]:
            self.marks.setdefault(self.rows[place].index, self.step)


def _commit(row: Row, tokens: Iterable[int]) -> None:
    row.commit(tokens)


def _is_finished(row: Row) -> bool:
    return row.is_finished


def _keep_going(rows: Sequence[Row]) -> bool:
    return True


def nothing(turn: Turn) -> None:
    """Change nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """Where a fault reaches into the decoder; by default nowhere."""

    cut: Callable[[Turn], None] = nothing
    """Before rejected slots are cut: may change `kept`."""

    before_move: Callable[[Turn], None] = nothing
    """Before slots are moved: what they hold can still be read."""

    forward: Callable[[Turn], None] = nothing
    """Before the forward: may change `seen`, `position_ids` and the cache."""

    verify: Callable[[Turn], None] = nothing
    """After the forward: may change `predictions` and `accepted`."""

    commit: Callable[[Row, Iterable[int]], None] = _commit
    """How tokens are appended to a row."""

    is_finished: Callable[[Row], bool] = _is_finished
    """When a row ends."""

    goes_on: Callable[[Sequence[Row]], bool] = _keep_going
    """Whether another round is run while rows are unfinished."""

    outputs: Callable[[list[list[int]], int], list[list[int]]] = lambda outputs, pad_token_id: outputs
    """What becomes of the outputs, which are in the order of the prompts, given the padding."""

    skips_last: bool = False
    """Whether the last tokens of a row come from the draft without a forward of the target."""

    clears_places: bool = True
    """Whether what a place held is hidden when another row takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault."""

    name: str
    """Name, in words joined by hyphens."""

    group: Group
    """What it breaks."""

    imitates: str
    """The mistake of a decoder's author that it stands for, in one sentence."""

    causes: tuple[Cause, ...]
    """What its author would call right; more than one where two names fit."""

    make: Callable[[], Injection]
    """Returns the fault, new for each call of a decoder."""

    layouts: tuple[Layout, ...] = tuple(Layout)
    """Where it can be made."""

    replaced: float = 0.5
    """Share of the proposals that are wrong in its trial, in [0, 1]."""

    end: End = End.NOWHERE
    """Where an end of sequence stands in its trial."""

    places: int | None = None
    """Rows decoded at a time; the others wait. None for all."""

    is_compacting: bool = False
    """Whether the decoder moves its slots together in the round where the fault is made."""

    origin: int | None = 0
    """Steps from the first change to the step where a check should see it, or None where no step shows it."""
