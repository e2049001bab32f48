"""Faults in outputs: decoding was right, what is returned is not."""

from __future__ import annotations

from specaudit.core.vocabulary import Cause
from specaudit.faults.fault import End, Fault, Group, Injection


def _rotated(outputs: list[list[int]], pad_token_id: int) -> list[list[int]]:
    return [*outputs[1:], *outputs[:1]]


def _first_two_swapped(outputs: list[list[int]], pad_token_id: int) -> list[list[int]]:
    return [outputs[1], outputs[0], *outputs[2:]]


def _padded(outputs: list[list[int]], pad_token_id: int) -> list[list[int]]:
    width = max(map(len, outputs))
    return [output + [pad_token_id] * (width - len(output)) for output in outputs]


FAULTS = (
    Fault(
        name="outputs-rotated",
        group=Group.OUTPUTS,
        imitates="Rows were sorted by length and their outputs are returned in that order.",
        causes=(Cause.PERMUTED,),
        make=lambda: Injection(outputs=_rotated),
        origin=None,
    ),
    Fault(
        name="two-outputs-swapped",
        group=Group.OUTPUTS,
        imitates="Two rows changed places and the list of prompts did not.",
        causes=(Cause.PERMUTED,),
        make=lambda: Injection(outputs=_first_two_swapped),
        origin=None,
    ),
    Fault(
        name="padding-returned",
        group=Group.OUTPUTS,
        imitates="Outputs are returned as a rectangle, padding included.",
        causes=(Cause.PAD_LEAK,),
        make=lambda: Injection(outputs=_padded),
        end=End.IN_OUTPUT,
        origin=None,
    ),
)
