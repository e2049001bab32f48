"""Mutants: random changes of a cache, which nobody has thought of; drawn from a seed, so that each can be made again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import TYPE_CHECKING

import torch

from specaudit.faults.fault import Injection, Layout
from specaudit.faults.slots import KEYS, VALUES, change_layers, live_columns

if TYPE_CHECKING:
    from torch import Tensor

    from specaudit.faults.fault import Turn

LAST_STEP = 7
"""Last round in which a mutant is made; trials have at least as many where nothing is accepted."""

KINDS = {"keys": (KEYS,), "values": (VALUES,), "keys and values": (KEYS, VALUES)}
"""What a mutant changes of a layer."""


class Operation(StrEnum):
    """What is done to slots."""

    SHIFT = "shift"
    """Each slot takes what lies before it."""

    SWAP = "swap"
    """Two rows change what they hold there."""

    ZERO = "zero"
    """The slots are zeroed."""

    CAST = "cast"
    """They make a round trip through bfloat16."""

    COPY = "copy"
    """They take what another row holds there."""

    STALE = "stale"
    """They take what lay there a forward ago."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One random change, made once."""

    number: int
    """Number in its seed, counted from 0."""

    layout: Layout
    """Layout of the decoder."""

    operation: Operation
    """What is done."""

    kind: str
    """To keys, values, or both; a key of `KINDS`."""

    layers: tuple[int, ...]
    """Layers in which it is done."""

    row: int
    """Row of the batch."""

    other_row: int
    """Row that it is swapped with or copied from."""

    step: int
    """Round before whose forward it is done."""

    first: float
    """Where the slots begin, as a share of the row's visible slots, in [0, 1)."""

    count: int
    """Number of slots, as far as there are so many behind the first."""

    replaced: float
    """Share of the proposals that are wrong, in [0, 1]."""

    @property
    def description(self) -> str:
        """Return what is done, for people."""
        slots = "1 slot" if self.count == 1 else f"{self.count} slots"
        where = f"layer{'s' if len(self.layers) > 1 else ''} {', '.join(map(str, self.layers))}"
        other = f" with row {self.other_row}" if self.operation in {Operation.SWAP, Operation.COPY} else ""
        return (
            f"{self.layout}: {self.operation} {self.kind} of {slots} from {self.first:.2f} on, {where}, "
            f"row {self.row}{other}, step {self.step}, {self.replaced:g} of the proposals wrong"
        )


def draw_mutant(number: int, *, seed: int, layouts: tuple[Layout, ...], layers: int, rows: int) -> Mutant:
    """Return a mutant for a model of some `layers` and a batch of some `rows`; the same for the same arguments."""
    random = Random(f"{seed}:{number}")  # noqa: S311 (a seeded choice, no secret)
    scope = random.choice(("one", "one", "some", "all"))
    chosen = {
        "one": lambda: [random.randrange(layers)],
        "some": lambda: sorted(random.sample(range(layers), random.randint(1, layers))),
        "all": lambda: list(range(layers)),
    }[scope]()
    row = random.randrange(rows)
    return Mutant(
        number=number,
        layout=random.choice(layouts),
        operation=random.choice(list(Operation)),
        kind=random.choice(list(KINDS)),
        layers=tuple(chosen),
        row=row,
        other_row=random.choice([other for other in range(rows) if other != row]),
        step=random.randint(1, LAST_STEP),
        first=random.random(),
        count=random.choice((1, 1, 2, 4, 100)),
        replaced=random.choice((0.3, 0.6, 1.0)),
    )


def injection_of(mutant: Mutant) -> Injection:
    """Return the fault that a mutant is, new for each call."""
    before: list[tuple[Tensor, Tensor]] = []

    def forward(turn: Turn) -> None:
        if turn.step == mutant.step and turn.running[mutant.row]:
            _change(turn, mutant, before)
            turn.mark(mutant.row)
        before[:] = [(keys.clone(), values.clone()) for keys, values in turn.cache.layers] if turn.step else []

    return Injection(forward=forward)


def _change(turn: Turn, mutant: Mutant, before: list[tuple[Tensor, Tensor]]) -> None:
    live = live_columns(turn, mutant.row)
    start = int(mutant.first * len(live))
    columns = live[start : start + mutant.count]
    for layer in mutant.layers:
        for kind in KINDS[mutant.kind]:
            old = before[layer][kind] if before else None
            change_layers(
                turn.cache,
                lambda states, old=old: _apply(states, old, mutant, columns),  # type: ignore[misc]
                layers=(layer,),
                kinds=(kind,),
            )


def _apply(states: Tensor, old: Tensor | None, mutant: Mutant, columns: list[int]) -> None:
    """Change states [B, heads, n, width] of one layer; `old` are those of the forward before."""
    row, other = mutant.row, mutant.other_row
    match mutant.operation:
        case Operation.SHIFT:
            states[row][:, columns] = states[row][:, [max(0, column - 1) for column in columns]]
        case Operation.SWAP:
            mine = states[row][:, columns].clone()
            states[row][:, columns] = states[other][:, columns]
            states[other][:, columns] = mine
        case Operation.ZERO:
            states[row][:, columns] = 0
        case Operation.CAST:
            states[row][:, columns] = states[row][:, columns].to(torch.bfloat16).to(states.dtype)
        case Operation.COPY:
            states[row][:, columns] = states[other][:, columns]
        case Operation.STALE:
            kept = [column for column in columns if old is not None and column < old.shape[2]]
            if old is not None:
                states[row][:, kept] = old[row][:, kept]
